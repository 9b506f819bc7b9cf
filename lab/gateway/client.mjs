// The operations of most programs by the client of AWS for JavaScript. Arguments: endpoint, key, secret.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import * as aws from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";

const [endpoint, accessKeyId, secretAccessKey] = process.argv.slice(2);
const client = new aws.S3Client({
  endpoint, region: "us-east-1", forcePathStyle: true, credentials: { accessKeyId, secretAccessKey },
});
const Bucket = "javascript";
const send = (Command, input = {}) => client.send(new aws[Command + "Command"]({ Bucket, ...input }));
const read = async (input) => Buffer.from(await (await send("GetObject", input)).Body.transformToByteArray());

const operations = {
  async buckets() {
    await send("CreateBucket");
    await send("HeadBucket");
  },
  async objects() {
    const Body = randomBytes(1_000_003);
    await send("PutObject", { Key: "a/ü", Body, Metadata: { who: "me" } });
    assert((await read({ Key: "a/ü" })).equals(Body));
    assert((await read({ Key: "a/ü", Range: "bytes=5-70000" })).equals(Body.subarray(5, 70_001)));
    assert.deepEqual((await send("HeadObject", { Key: "a/ü" })).Metadata, { who: "me" });
  },
  async multipart() {
    const Body = randomBytes((11 << 20) + 5);
    await new Upload({ client, params: { Bucket, Key: "large", Body }, partSize: 5 << 20 }).done();
    assert((await read({ Key: "large" })).equals(Body));
  },
  async conditions() {
    const again = send("PutObject", { Key: "large", Body: "x", IfNoneMatch: "*" });
    await assert.rejects(again, { name: "PreconditionFailed" });
  },
  async copies() {
    await send("CopyObject", { Key: "copy", CopySource: `${Bucket}/a/ü`.split("/").map(encodeURIComponent).join("/") });
    assert((await read({ Key: "copy" })).equals(await read({ Key: "a/ü" })));
  },
  async listings() {
    const found = await send("ListObjectsV2", { Delimiter: "/" });
    assert.deepEqual(found.Contents.map((object) => object.Key), ["copy", "large"]);
    assert.deepEqual(found.CommonPrefixes, [{ Prefix: "a/" }]);
  },
  async deletions() {
    const Objects = ["copy", "large", "a/ü"].map((Key) => ({ Key }));
    assert.equal((await send("DeleteObjects", { Delete: { Objects } })).Deleted.length, 3);
    await send("DeleteBucket");
  },
};
for (const [name, operation] of Object.entries(operations)) {
  await operation();
  console.log(name, "ok");
}
