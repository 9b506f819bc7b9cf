// Compares the speed of package paritas with that of github.com/klauspost/reedsolomon: each sample
// is a pair of runs back to back, so that the ratio holds on a machine whose speed changes. Both
// have the same number of threads, and their results are compared first.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/klauspost/reedsolomon"
	paritas "github.com/paritas/paritas/go"
)

var (
	pairs   = flag.Int("pairs", 31, "pairs of runs for each line")
	threads = flag.Int("threads", 1, "threads of either package")
)

func main() {
	flag.Parse()
	fmt.Printf("%-8s %9s %-12s %9s  %s\n", "shape", "shard", "call", "ratio", "lowest to highest quarter (above 1: paritas is faster)")
	for _, shape := range [][2]int{{4, 2}, {10, 4}, {17, 3}} {
		for _, size := range []int{256, 4 << 10, 64 << 10, 1 << 20} {
			compare(shape[0], shape[1], size)
		}
	}
	overhead()
}

func compare(data, parity, size int) {
	ours, err := paritas.New(data, parity, paritas.WithMaxGoroutines(*threads))
	check(err)
	theirs, err := reedsolomon.New(data, parity, reedsolomon.WithMaxGoroutines(*threads))
	check(err)
	our, their := filled(ours, data, size), filled(theirs, data, size)
	check(ours.Encode(our))
	check(theirs.Encode(their))
	if !slices.EqualFunc(our, their, bytes.Equal) {
		log.Fatal("the shards differ")
	}
	name := fmt.Sprintf("%d+%d", data, parity)
	report(name, size, "encode",
		func() { check(ours.Encode(our)) },
		func() { check(theirs.Encode(their)) })
	lose := func(encoder reedsolomon.Encoder, shards [][]byte) func() {
		return func() {
			for lost := range min(parity, data) {
				shards[lost] = shards[lost][:0]
			}
			check(encoder.Reconstruct(shards))
		}
	}
	report(name, size, "reconstruct", lose(ours, our), lose(theirs, their))
	if !slices.EqualFunc(our, their, bytes.Equal) {
		log.Fatal("the reconstructed shards differ")
	}
}

func filled(encoder reedsolomon.Encoder, data, size int) [][]byte {
	shards := encoder.(interface{ AllocAligned(int) [][]byte }).AllocAligned(size)
	for number, shard := range shards[:data] {
		for i := range shard {
			shard[i] = byte(i%251*7 + number*31)
		}
	}
	return shards
}

func report(shape string, size int, call string, ours, theirs func()) {
	count := 1
	for timed(ours, count) < 2*time.Millisecond {
		count *= 2
	}
	ratios := make([]float64, *pairs)
	for pair := range ratios {
		first, second := ours, theirs
		if pair%2 == 1 {
			first, second = theirs, ours
		}
		a, b := timed(first, count), timed(second, count)
		if pair%2 == 1 {
			a, b = b, a
		}
		ratios[pair] = float64(b) / float64(a)
	}
	slices.Sort(ratios)
	quarter := len(ratios) / 4
	fmt.Printf("%-8s %9d %-12s %9.2f  %.2f to %.2f\n", shape, size, call,
		ratios[len(ratios)/2], ratios[quarter], ratios[len(ratios)-1-quarter])
}

func timed(run func(), count int) time.Duration {
	start := time.Now()
	for range count {
		run()
	}
	return time.Since(start)
}

// overhead prints what a call costs beside its work: that of the smallest shards there are.
func overhead() {
	encoder, err := paritas.New(2, 1, paritas.WithMaxGoroutines(1))
	check(err)
	shards := filled(encoder, 2, 1)
	samples := make([]float64, *pairs)
	for sample := range samples {
		const count = 10_000
		samples[sample] = float64(timed(func() { check(encoder.Encode(shards)) }, count).Nanoseconds()) / count
	}
	slices.Sort(samples)
	fmt.Printf("a call of paritas with shards of one byte: %.0f ns\n", samples[len(samples)/2])
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
