// Measures klauspost/reedsolomon on one goroutine, with the protocol of c/peer.h. The variant "avx2"
// forbids it AVX-512 and GFNI, and "leopard" asks for Leopard's code.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/klauspost/reedsolomon"
)

const page, stagger = 4096, 320

func shard(index, length int, aligned bool) []byte {
	memory := make([]byte, length+2*page)
	start := (page - int(uintptr(unsafe.Pointer(&memory[0]))%page)) % page
	if !aligned {
		start += index * stagger % page
	}
	made := memory[start : start+length : start+length]
	for j := range made {
		made[j] = byte(j%251*7 + index*31)
	}
	return made
}

// parity returns the FNV-1a hash of all parity.
func parity(shards [][]byte) uint64 {
	hash := uint64(0xcbf29ce484222325)
	for _, shard := range shards {
		for _, b := range shard {
			hash = (hash ^ uint64(b)) * 0x100000001b3
		}
	}
	return hash
}

func must(err error) {
	if err != nil {
		fmt.Println("wrong:", err)
		os.Exit(1)
	}
}

// patterns returns all ways to lose some of the shards or, if there are more than 2,000, about that many of the first
// million at even distances.
func patterns(nodes, lost int) [][]int {
	var all [][]int
	pattern := make([]int, lost)
	for i := range pattern {
		pattern[i] = i
	}
	for len(all) < 1_000_000 {
		all = append(all, append([]int(nil), pattern...))
		at := lost - 1
		for at >= 0 && pattern[at] == nodes-lost+at {
			at--
		}
		if at < 0 {
			break
		}
		pattern[at]++
		for next := at + 1; next < lost; next++ {
			pattern[next] = pattern[next-1] + 1
		}
	}
	step := (len(all) + 1999) / 2000
	var chosen [][]int
	for i := 0; i < len(all); i += step {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// repairing returns the function that restores the shards of the next pattern, the first after the last. All patterns are
// tried once, and the shards compared: after that, the inverse of each is in the library's tree.
func repairing(codec reedsolomon.Encoder, shards [][]byte, patterns [][]int) func() {
	next := 0
	repair := func() {
		for _, i := range patterns[next] {
			shards[i] = shards[i][:0]
		}
		must(codec.Reconstruct(shards))
		next = (next + 1) % len(patterns)
	}
	for _, lost := range patterns {
		var kept [][]byte
		for _, i := range lost {
			kept = append(kept, bytes.Clone(shards[i]))
			clear(shards[i])
		}
		repair()
		for at, i := range lost {
			if !bytes.Equal(kept[at], shards[i]) {
				fmt.Println("wrong: shard", i, "of a pattern did not come back")
				os.Exit(1)
			}
		}
	}
	return repair
}

func main() {
	k, _ := strconv.Atoi(os.Args[1])
	m, _ := strconv.Atoi(os.Args[2])
	length, _ := strconv.Atoi(os.Args[3])
	options := []reedsolomon.Option{reedsolomon.WithMaxGoroutines(1)}
	if len(os.Args) > 6 && os.Args[6] == "avx2" {
		options = append(options, reedsolomon.WithAVX512(false), reedsolomon.WithGFNI(false), reedsolomon.WithAVXGFNI(false))
	}
	if len(os.Args) > 6 && os.Args[6] == "leopard" {
		options = append(options, reedsolomon.WithLeopardGF(true))
	}
	codec, err := reedsolomon.New(k, m, options...)
	if errors.Is(err, reedsolomon.ErrMaxShardNum) || errors.Is(err, reedsolomon.ErrInvShardNum) {
		os.Exit(3)
	}
	must(err)
	shards := make([][]byte, k+m)
	for i := range shards {
		shards[i] = shard(i, length, os.Args[5] == "page")
	}
	must(codec.Encode(shards))
	lost := min(k, m)
	kept := make([][]byte, lost)
	decode := func() {
		for i := range lost {
			shards[i] = shards[i][:0]
		}
		must(codec.ReconstructData(shards))
	}
	for i := range kept {
		kept[i] = bytes.Clone(shards[i])
		clear(shards[i])
	}
	decode()
	for i := range kept {
		if !bytes.Equal(kept[i], shards[i]) {
			fmt.Println("wrong: shard", i, "did not come back")
			os.Exit(1)
		}
	}
	run := func() { must(codec.Encode(shards)) }
	switch os.Args[4] {
	case "decode":
		run = decode
	case "patterns":
		run = repairing(codec, shards, patterns(k+m, lost))
	}
	fmt.Printf("parity %016x\nready\n", parity(shards[k:]))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		n, _ := strconv.Atoi(strings.Fields(lines.Text())[1])
		if n > 1 {
			run()
		}
		start := time.Now()
		for range n {
			run()
		}
		fmt.Println(time.Since(start).Nanoseconds())
	}
}
