package paritas_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	paritas "github.com/paritas/paritas/go"
)

// sample returns bytes that look random and are the same in every run.
func sample(count int) []byte {
	random := rand.New(rand.NewPCG(7, uint64(count)))
	made := make([]byte, count)
	for i := range made {
		made[i] = byte(random.Uint32())
	}
	return made
}

// encoded returns all shards of an object.
func encoded(t *testing.T, encoder paritas.Encoder, object []byte) [][]byte {
	t.Helper()
	shards, err := encoder.Split(bytes.Clone(object))
	if err != nil {
		t.Fatal(err)
	}
	if err := encoder.Encode(shards); err != nil {
		t.Fatal(err)
	}
	return shards
}

func clone(shards [][]byte) [][]byte {
	made := make([][]byte, len(shards))
	for number, shard := range shards {
		made[number] = bytes.Clone(shard)
	}
	return made
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

var codes = []string{
	"backblaze:k=10,m=4", "isal-cauchy:k=5,m=2", "reed-solomon:k=6,m=3", "10+4", "cauchy:k=20,m=6", "rdp:k=6", "zfec:k=3,m=5",
}

func TestEveryLossOfEveryCode(t *testing.T) {
	for _, spec := range codes {
		encoder := must[paritas.Encoder](t)(paritas.NewCode(spec))
		facts := encoder.(paritas.Extensions)
		shards := encoded(t, encoder, sample(facts.DataShards()*facts.ShardSizeMultiple()*97-1))
		if right, err := encoder.Verify(shards); !right || err != nil {
			t.Fatalf("%s: its own shards do not verify: %v", spec, err)
		}
		n := facts.TotalShards()
		for first := range n {
			for second := first; second < n; second++ {
				left := clone(shards)
				left[first], left[second] = nil, left[second][:0]
				if err := encoder.Reconstruct(left); err != nil {
					t.Fatalf("%s without %d and %d: %v", spec, first, second, err)
				}
				if !slices.EqualFunc(left, shards, bytes.Equal) {
					t.Fatalf("%s without %d and %d: other bytes came back", spec, first, second)
				}
			}
		}
	}
}

func TestReconstructDataAndSomeLeaveTheRestAlone(t *testing.T) {
	encoder := must[paritas.Encoder](t)(paritas.New(6, 3))
	shards := encoded(t, encoder, sample(60_001))
	left := clone(shards)
	left[1], left[4], left[7] = nil, make([]byte, 0, len(shards[4])), nil
	memory := &left[4][:1][0]
	if err := encoder.ReconstructData(left); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(left[1], shards[1]) || !bytes.Equal(left[4], shards[4]) || left[7] != nil {
		t.Error("ReconstructData did not restore the data alone")
	}
	if &left[4][0] != memory {
		t.Error("an empty shard with capacity lost its memory")
	}
	for _, flags := range []int{6, 9} {
		left = clone(shards)
		left[0], left[5], left[8] = nil, nil, nil
		required := make([]bool, flags)
		required[5] = true
		if err := encoder.ReconstructSome(left, required); err != nil {
			t.Fatal(err)
		}
		if left[0] != nil || left[8] != nil || !bytes.Equal(left[5], shards[5]) {
			t.Errorf("ReconstructSome with %d flags did not restore shard 5 alone", flags)
		}
	}
	if err := encoder.ReconstructSome(left, make([]bool, 7)); !errors.Is(err, paritas.ErrInvalidInput) {
		t.Errorf("7 flags: got %v", err)
	}
}

func TestParityByPartsAndByChanges(t *testing.T) {
	for _, spec := range codes {
		encoder := must[paritas.Encoder](t)(paritas.NewCode(spec))
		facts := encoder.(paritas.Extensions)
		k, size := facts.DataShards(), facts.ShardSizeMultiple()*64
		shards := encoded(t, encoder, sample(k*size))
		parity := make([][]byte, facts.ParityShards())
		for i := range parity {
			parity[i] = make([]byte, size)
		}
		for idx := k - 1; idx >= 0; idx-- {
			if err := encoder.EncodeIdx(shards[idx], idx, parity); err != nil {
				t.Fatalf("%s: %v", spec, err)
			}
		}
		if !slices.EqualFunc(parity, shards[k:], bytes.Equal) {
			t.Errorf("%s: EncodeIdx makes other parity than Encode", spec)
		}
		changed := make([][]byte, k)
		changed[0], changed[k-1] = bytes.Repeat([]byte{1}, size), bytes.Repeat([]byte{2}, size)
		before := clone(shards[:k])
		if err := encoder.Update(shards, changed); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		if !slices.EqualFunc(before, shards[:k], bytes.Equal) {
			t.Errorf("%s: Update changed data", spec)
		}
		shards[0], shards[k-1] = changed[0], changed[k-1]
		if right, err := encoder.Verify(shards); !right || err != nil {
			t.Errorf("%s: the parity after Update is wrong: %v", spec, err)
		}
	}
}

func TestVerifyFindsAFlippedBit(t *testing.T) {
	encoder := must[paritas.Encoder](t)(paritas.New(10, 4))
	shards := encoded(t, encoder, sample(100_003))
	for number := range shards {
		shards[number][len(shards[number])-1] ^= 0x10
		if right, err := encoder.Verify(shards); right || err != nil {
			t.Errorf("a flipped bit of shard %d: %v, %v", number, right, err)
		}
		shards[number][len(shards[number])-1] ^= 0x10
	}
}

func TestSplitAndJoinOfEveryLength(t *testing.T) {
	for _, spec := range []string{"backblaze:k=5,m=2", "5+2"} {
		encoder := must[paritas.Encoder](t)(paritas.NewCode(spec))
		for length := 1; length < 200; length++ {
			object := sample(length)
			for _, spare := range []int{0, 1, 7, 1000} {
				given := append(make([]byte, 0, length+spare), object...)
				shards := must[[][]byte](t)(encoder.Split(given))
				if err := encoder.Encode(shards); err != nil {
					t.Fatalf("%s, %d bytes: %v", spec, length, err)
				}
				shards[0], shards[3] = nil, nil
				if err := encoder.Join(&bytes.Buffer{}, shards, length); !errors.Is(err, paritas.ErrReconstructRequired) {
					t.Fatalf("joining without shard 0: got %v", err)
				}
				if err := encoder.Reconstruct(shards); err != nil {
					t.Fatal(err)
				}
				var joined bytes.Buffer
				if err := encoder.Join(&joined, shards, length); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(joined.Bytes(), object) {
					t.Fatalf("%s, %d bytes with %d to spare: another object came back", spec, length, spare)
				}
				if err := encoder.Join(&joined, shards, 5*len(shards[0])+1); !errors.Is(err, paritas.ErrShortData) {
					t.Fatalf("joining too much: got %v", err)
				}
			}
		}
	}
}

// expectError compares errors as programs that come from klauspost/reedsolomon do.
func expectError(t *testing.T, err, kind error) {
	t.Helper()
	if err != kind {
		t.Errorf("got %v, not %v", err, kind)
	}
}

func TestWrongUpdatesAndJoinsAreNamed(t *testing.T) {
	encoder := must[paritas.Encoder](t)(paritas.New(4, 2))
	shards := encoded(t, encoder, sample(4000))
	missing := clone(shards)
	missing[5] = nil
	changed := make([][]byte, 4)
	expectError(t, encoder.Update(shards, changed), paritas.ErrShardNoData)
	changed[1] = make([]byte, 1000)
	expectError(t, encoder.Update(missing, changed), paritas.ErrInvalidInput)
	missing = clone(shards)
	missing[1] = nil
	expectError(t, encoder.Update(missing, changed), paritas.ErrInvalidInput)
	changed[1] = changed[1][:999]
	expectError(t, encoder.Update(shards, changed), paritas.ErrShardSize)
	expectError(t, encoder.Join(&bytes.Buffer{}, shards, -1), paritas.ErrInvalidInput)
	expectError(t, encoder.Join(&bytes.Buffer{}, shards, 4001), paritas.ErrShortData)

	// With two shards, and with several, the bytes that remain may be as many as the object has.
	for _, data := range []int{2, 4} {
		encoder := must[paritas.Encoder](t)(paritas.New(data, 2))
		shards := encoded(t, encoder, sample(1000*data))
		join := func(number, length, outSize int) error {
			cut := clone(shards)
			cut[number] = cut[number][:length]
			return encoder.Join(&bytes.Buffer{}, cut, outSize)
		}
		expectError(t, join(0, 0, 1000), paritas.ErrReconstructRequired)
		expectError(t, join(0, 990, 1000*data-20), paritas.ErrShardSize)
		expectError(t, join(data-1, 980, 1000*data-20), nil)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	expect := func(err, kind error) {
		t.Helper()
		expectError(t, err, kind)
	}
	_, err := paritas.New(0, 3)
	expect(err, paritas.ErrInvShardNum)
	_, err = paritas.New(3, -1)
	expect(err, paritas.ErrInvShardNum)
	_, err = paritas.New(200, 57)
	expect(err, paritas.ErrMaxShardNum)
	// For Leopard's code, the parity shards count as rounded up to a power of two.
	leopard := paritas.WithLeopardGF(true)
	for _, shape := range [][2]int{{200, 56}, {129, 100}, {193, 33}, {1, 129}, {1, 255}, {255, 2}} {
		_, err = paritas.New(shape[0], shape[1], leopard)
		expect(err, paritas.ErrMaxShardNum)
		_, err = paritas.NewStream(shape[0], shape[1], leopard)
		expect(err, paritas.ErrMaxShardNum)
	}
	for _, shape := range [][2]int{{128, 128}, {128, 100}, {192, 33}, {1, 128}, {254, 2}, {255, 1}, {256, 0}} {
		_, err = paritas.New(shape[0], shape[1], leopard)
		expect(err, nil)
	}
	for _, spec := range []string{"xcode:n=5", "dpg:k=4,m=2,m2=3", "nonsense:k=3", "lt:k=8,n=16", "10+", "4+2\x00", "4+2\x00 is cut here"} {
		if _, err := paritas.NewCode(spec); err == nil {
			t.Errorf("%s was taken", spec)
		} else if !strings.HasPrefix(err.Error(), "paritas: ") {
			t.Errorf("%s: who says %q?", spec, err)
		}
	}
	encoder := must[paritas.Encoder](t)(paritas.New(4, 2))
	shards := encoded(t, encoder, sample(4000))
	expect(encoder.Encode(shards[:5]), paritas.ErrTooFewShards)
	expect(encoder.Encode(make([][]byte, 6)), paritas.ErrShardNoData)
	short := clone(shards)
	short[2] = short[2][:999]
	expect(encoder.Encode(short), paritas.ErrShardSize)
	lost := clone(shards)
	lost[0], lost[1], lost[2] = nil, nil, nil
	expect(encoder.Reconstruct(lost), paritas.ErrTooFewShards)
	if lost[0] != nil {
		t.Error("a shard was filled although that failed")
	}
	expect(encoder.EncodeIdx(shards[0], 4, shards[4:]), paritas.ErrInvShardNum)
	expect(encoder.EncodeIdx(shards[0][:7], 0, shards[4:]), paritas.ErrShardSize)
	expect(encoder.Update(shards, make([][]byte, 3)), paritas.ErrTooFewShards)
	packets := must[paritas.Encoder](t)(paritas.NewCode("10+4"))
	odd := make([][]byte, 14)
	for i := range odd {
		odd[i] = make([]byte, 2047)
	}
	expect(packets.Encode(odd), paritas.ErrInvalidShardSize)
	same := clone(shards)
	same[4] = same[5]
	var failed *paritas.Error
	if err := encoder.Encode(same); !errors.As(err, &failed) || !strings.Contains(failed.Message, "overlap") {
		t.Errorf("two parity shards in one place: got %v", err)
	}
}

func TestWithoutParity(t *testing.T) {
	encoder := must[paritas.Encoder](t)(paritas.New(4, 0))
	shards := encoded(t, encoder, sample(4000))
	if right, err := encoder.Verify(shards); !right || err != nil || len(shards) != 4 {
		t.Errorf("%d shards: %v, %v", len(shards), right, err)
	}
	shards[1] = nil
	if err := encoder.Reconstruct(shards); !errors.Is(err, paritas.ErrTooFewShards) {
		t.Errorf("got %v", err)
	}
}

func TestManyGoroutinesShareAnEncoder(t *testing.T) {
	encoder := must[paritas.Encoder](t)(paritas.New(10, 4))
	var group sync.WaitGroup
	failures := make(chan error, 16)
	for worker := range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := range 50 {
				object := sample(1000*worker + round + 1)
				shards, err := encoder.Split(bytes.Clone(object))
				if err == nil {
					err = encoder.Encode(shards)
				}
				if err == nil {
					shards[worker%14], shards[(worker+round)%14] = nil, nil
					err = encoder.Reconstruct(shards)
				}
				var joined bytes.Buffer
				if err == nil {
					err = encoder.Join(&joined, shards, len(object))
				}
				if err == nil && !bytes.Equal(joined.Bytes(), object) {
					err = fmt.Errorf("worker %d, round %d: other bytes", worker, round)
				}
				if err != nil {
					failures <- err
					return
				}
				// An error's message belongs to the thread whose call failed.
				shards[0], shards[1], shards[2], shards[3], shards[4] = nil, nil, nil, nil, nil
				if err := encoder.Reconstruct(shards); !errors.Is(err, paritas.ErrTooFewShards) {
					failures <- fmt.Errorf("five lost: %v", err)
					return
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

func TestAllocAligned(t *testing.T) {
	encoder := must[paritas.Encoder](t)(paritas.New(5, 3))
	for _, each := range []int{0, 1, 63, 64, 65, 5000} {
		for _, shards := range [][][]byte{encoder.(paritas.Extensions).AllocAligned(each), paritas.AllocAligned(8, each)} {
			if len(shards) != 8 {
				t.Fatalf("%d shards", len(shards))
			}
			for _, shard := range shards {
				if len(shard) != each {
					t.Errorf("%d bytes instead of %d", len(shard), each)
				}
			}
		}
	}
}

func ExampleNew() {
	encoder, _ := paritas.New(10, 4)
	shards, _ := encoder.Split([]byte("All that is here survives the loss of any four of fourteen shards."))
	encoder.Encode(shards)
	shards[0], shards[3], shards[11], shards[13] = nil, nil, nil, nil
	encoder.Reconstruct(shards)
	var object bytes.Buffer
	encoder.Join(&object, shards, 66)
	fmt.Println(object.String())
	// Output: All that is here survives the loss of any four of fourteen shards.
}
