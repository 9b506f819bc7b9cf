// A load on an S3 endpoint by minio-go. Arguments: host and port, key, secret, clients, and the bytes of an object. Each line
// of standard input is one run, `put FIRST COUNT` or `get FIRST COUNT`: that many objects, numbered from FIRST on, by all
// clients together. The answer is one line with the nanoseconds of the run, and those of each request. Bytes that come
// back are compared.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	bucket = "load"
	// Bytes that are compared at a time.
	step = 256 << 10
)

var ctx = context.Background()

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

// content has the bytes of all objects but for the first eight, which are an object's number.
type content []byte

func (whole content) of(object int) io.Reader {
	var head [8]byte
	binary.LittleEndian.PutUint64(head[:], uint64(object))
	return io.MultiReader(bytes.NewReader(head[:]), bytes.NewReader(whole[8:]))
}

func put(client *minio.Client, object int, whole content) {
	options := minio.PutObjectOptions{DisableMultipart: true}
	_, err := client.PutObject(ctx, bucket, name(object), whole.of(object), int64(len(whole)), options)
	must(err)
}

func get(client *minio.Client, object int, whole content) {
	core := minio.Core{Client: client}
	body, _, _, err := core.GetObject(ctx, bucket, name(object), minio.GetObjectOptions{})
	must(err)
	defer body.Close()
	given, expected := make([]byte, step), make([]byte, step)
	for right := whole.of(object); ; {
		length, end := io.ReadFull(body, given)
		_, err := io.ReadFull(right, expected[:length])
		must(err)
		if !bytes.Equal(given[:length], expected[:length]) {
			panic(fmt.Sprintf("object %d came back with other bytes", object))
		}
		if end == io.EOF || end == io.ErrUnexpectedEOF {
			if rest, _ := io.Copy(io.Discard, right); rest != 0 {
				panic(fmt.Sprintf("object %d came back without its last %d bytes", object, rest))
			}
			return
		}
		must(end)
	}
}

func name(object int) string { return fmt.Sprintf("object-%06d", object) }

// run lets all clients do their requests, and returns the nanoseconds of each.
func run(clients []*minio.Client, first, count int, request func(*minio.Client, int)) []int64 {
	taken := make([]int64, count)
	var next atomic.Int64
	var all sync.WaitGroup
	for _, client := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for index := int(next.Add(1)) - 1; index < count; index = int(next.Add(1)) - 1 {
				began := time.Now()
				request(client, first+index)
				taken[index] = time.Since(began).Nanoseconds()
			}
		}()
	}
	all.Wait()
	return taken
}

func main() {
	endpoint, key, secret := os.Args[1], os.Args[2], os.Args[3]
	whole := make(content, number(os.Args[5]))
	rand.New(rand.NewSource(1)).Read(whole)
	clients := make([]*minio.Client, number(os.Args[4]))
	for index := range clients {
		options := &minio.Options{Creds: credentials.NewStaticV4(key, secret, ""), Region: "us-east-1", BucketLookup: minio.BucketLookupPath}
		client, err := minio.New(endpoint, options)
		must(err)
		clients[index] = client
	}
	exists, err := clients[0].BucketExists(ctx, bucket)
	must(err)
	if !exists {
		must(clients[0].MakeBucket(ctx, bucket, minio.MakeBucketOptions{}))
	}
	requests := map[string]func(*minio.Client, int, content){"put": put, "get": get}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		request := requests[words[0]]
		began := time.Now()
		taken := run(clients, number(words[1]), number(words[2]), func(client *minio.Client, object int) { request(client, object, whole) })
		fmt.Print(time.Since(began).Nanoseconds())
		for _, nanoseconds := range taken {
			fmt.Print(" ", nanoseconds)
		}
		fmt.Println()
	}
}
