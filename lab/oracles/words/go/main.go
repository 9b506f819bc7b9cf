// Serves klauspost/reedsolomon with its default code and with those of WithLeopardGF and WithLeopardGF16, with the protocol of c/serve.h. With the arguments
// `split FILE OUT K M`, writes instead what its simple encoder makes of FILE: OUT.0, OUT.1, ….
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/reedsolomon"
)

func must(err error) {
	if err != nil {
		log.Fatal("oracle: ", err)
	}
}

func split(file, out string, k, m int) {
	content, err := os.ReadFile(file)
	must(err)
	codec, err := reedsolomon.New(k, m)
	must(err)
	shards, err := codec.Split(content)
	must(err)
	must(codec.Encode(shards))
	for i, shard := range shards {
		must(os.WriteFile(fmt.Sprintf("%s.%d", out, i), shard, 0o644))
	}
}

func main() {
	if len(os.Args) == 6 && os.Args[1] == "split" {
		k, err := strconv.Atoi(os.Args[4])
		must(err)
		m, err := strconv.Atoi(os.Args[5])
		must(err)
		split(os.Args[2], os.Args[3], k, m)
		return
	}
	source, target := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		line, err := source.ReadString('\n')
		if err == io.EOF {
			return
		}
		must(err)
		serve(strings.Fields(line), source, target)
		must(target.Flush())
	}
}

func serve(words []string, source io.Reader, target io.Writer) {
	var k, m, w, length int
	_, err := fmt.Sscan(strings.Join(words[2:6], " "), &k, &m, &w, &length)
	must(err)
	encodes := words[0] == "encode"
	shards := make([][]byte, k+m)
	for i := range shards {
		shards[i] = make([]byte, length)
		if i < k || !encodes {
			_, err = io.ReadFull(source, shards[i])
			must(err)
		}
	}
	var options []reedsolomon.Option
	switch words[1] {
	case "leopard8":
		options = append(options, reedsolomon.WithLeopardGF(true))
	case "leopard16":
		options = append(options, reedsolomon.WithLeopardGF16(true))
	}
	codec, err := reedsolomon.New(k, m, options...)
	must(err)
	first := k
	if encodes {
		must(codec.Encode(shards))
	} else {
		first = 0
		for _, number := range strings.Split(words[6], ",") {
			lost, err := strconv.Atoi(number)
			must(err)
			shards[lost] = nil
		}
		must(codec.Reconstruct(shards))
	}
	for _, shard := range shards[first:] {
		_, err = target.Write(shard)
		must(err)
	}
}
