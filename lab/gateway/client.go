// The operations of most programs by minio-go. Arguments: host and port, key, secret.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const bucket = "golang"

var (
	client *minio.Client
	ctx    = context.Background()
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(holds bool) {
	if !holds {
		panic("the answer is another one")
	}
}

func read(key string, options minio.GetObjectOptions) []byte {
	object, err := client.GetObject(ctx, bucket, key, options)
	must(err)
	body, err := io.ReadAll(object)
	must(err)
	return body
}

func put(key string, body []byte, options minio.PutObjectOptions) error {
	_, err := client.PutObject(ctx, bucket, key, bytes.NewReader(body), int64(len(body)), options)
	return err
}

func main() {
	var err error
	client, err = minio.New(os.Args[1], &minio.Options{
		Creds: credentials.NewStaticV4(os.Args[2], os.Args[3], ""), Region: "us-east-1",
	})
	must(err)
	body := make([]byte, 11<<20+5)
	_, err = rand.Read(body)
	must(err)
	for _, operation := range []struct {
		name string
		act  func()
	}{
		{"buckets", func() {
			must(client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}))
			there, err := client.BucketExists(ctx, bucket)
			must(err)
			expect(there)
		}},
		{"objects", func() {
			must(put("a/ü", body[:1_000_003], minio.PutObjectOptions{UserMetadata: map[string]string{"Who": "me"}}))
			expect(bytes.Equal(read("a/ü", minio.GetObjectOptions{}), body[:1_000_003]))
			var part minio.GetObjectOptions
			must(part.SetRange(5, 70_000))
			expect(bytes.Equal(read("a/ü", part), body[5:70_001]))
			about, err := client.StatObject(ctx, bucket, "a/ü", minio.StatObjectOptions{})
			must(err)
			expect(about.UserMetadata["Who"] == "me")
		}},
		{"multipart", func() {
			must(put("large", body, minio.PutObjectOptions{PartSize: 5 << 20}))
			expect(bytes.Equal(read("large", minio.GetObjectOptions{}), body))
		}},
		{"conditions", func() {
			var once minio.PutObjectOptions
			once.SetMatchETagExcept("*")
			expect(minio.ToErrorResponse(put("large", body[:9], once)).Code == "PreconditionFailed")
		}},
		{"copies", func() {
			to, from := minio.CopyDestOptions{Bucket: bucket, Object: "copy"}, minio.CopySrcOptions{Bucket: bucket, Object: "a/ü"}
			_, err := client.CopyObject(ctx, to, from)
			must(err)
			expect(bytes.Equal(read("copy", minio.GetObjectOptions{}), body[:1_000_003]))
		}},
		{"listings", func() {
			var keys []string
			for object := range client.ListObjects(ctx, bucket, minio.ListObjectsOptions{}) {
				must(object.Err)
				keys = append(keys, object.Key)
			}
			expect(fmt.Sprint(keys) == "[copy large a/]" || fmt.Sprint(keys) == "[a/ copy large]")
		}},
		{"deletions", func() {
			for _, key := range []string{"copy", "large", "a/ü"} {
				must(client.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{}))
			}
			must(client.RemoveBucket(ctx, bucket))
		}},
	} {
		operation.act()
		fmt.Println(operation.name, "ok")
	}
}
