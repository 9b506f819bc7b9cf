package paritas_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"testing/iotest"

	paritas "github.com/paritas/paritas/go"
)

func readers(shards [][]byte) []io.Reader {
	made := make([]io.Reader, len(shards))
	for number, shard := range shards {
		if shard != nil {
			// A reader may return less than it is asked for.
			made[number] = iotest.HalfReader(bytes.NewReader(shard))
		}
	}
	return made
}

func writers(count int) ([]io.Writer, []*bytes.Buffer) {
	made, buffers := make([]io.Writer, count), make([]*bytes.Buffer, count)
	for number := range made {
		buffers[number] = &bytes.Buffer{}
		made[number] = buffers[number]
	}
	return made, buffers
}

func TestStreamsGiveTheBytesOfShardsInMemory(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		for _, code := range []string{"backblaze:k=5,m=3", "5+3"} {
			for _, length := range []int{1, 5, 4999, 40_960, 1_000_003} {
				walkStreams(t, code, length, concurrent)
			}
		}
	}
}

func walkStreams(t *testing.T, code string, length int, concurrent bool) {
	options := []paritas.Option{paritas.WithStreamBlockSize(10_000), paritas.WithConcurrentStreams(concurrent)}
	streams := must[paritas.StreamEncoder](t)(paritas.NewStreamCode(code, options...))
	encoder := must[paritas.Encoder](t)(paritas.NewCode(code))
	object := sample(length)

	pieces, buffers := writers(5)
	if err := streams.Split(bytes.NewReader(object), pieces, int64(length)); err != nil {
		t.Fatal(err)
	}
	shards := make([][]byte, 8)
	for number, buffer := range buffers {
		shards[number] = buffer.Bytes()
	}
	parity, made := writers(3)
	if err := streams.Encode(readers(shards[:5]), parity); err != nil {
		t.Fatalf("%s, %d bytes: %v", code, length, err)
	}
	for number, buffer := range made {
		shards[5+number] = buffer.Bytes()
	}
	if !slices.EqualFunc(shards, encoded(t, encoder, object), bytes.Equal) {
		t.Fatalf("%s, %d bytes: streams make other shards", code, length)
	}
	if right, err := streams.Verify(readers(shards)); !right || err != nil {
		t.Fatalf("%s, %d bytes: %v, %v", code, length, right, err)
	}

	left := slices.Clone(shards)
	left[0], left[2], left[6] = nil, nil, nil
	fill, filled := writers(8)
	for number := range fill {
		if number != 0 && number != 6 {
			fill[number] = nil
		}
	}
	if err := streams.Reconstruct(readers(left), fill); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(filled[0].Bytes(), shards[0]) || !bytes.Equal(filled[6].Bytes(), shards[6]) || filled[2].Len() > 0 {
		t.Fatalf("%s, %d bytes: Reconstruct did not write shards 0 and 6 alone", code, length)
	}
	var joined bytes.Buffer
	if err := streams.Join(&joined, readers(shards[:5]), int64(length)); err != nil || !bytes.Equal(joined.Bytes(), object) {
		t.Fatalf("%s, %d bytes: another object came back: %v", code, length, err)
	}
	shards[7][length/10] ^= 1
	if right, err := streams.Verify(readers(shards)); right || err != nil {
		t.Fatalf("a flipped bit: %v, %v", right, err)
	}
}

// allocated returns how many bytes a call allocates, after a first one. Pools would be emptied by a
// collection of garbage, and each processor has its own.
func allocated(call func()) uint64 {
	const calls = 10
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	call()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / calls
}

func TestLaterCallsAllocateNoBlocks(t *testing.T) {
	streams := must[paritas.StreamEncoder](t)(paritas.NewStream(2, 1))
	shards := encoded(t, must[paritas.Encoder](t)(paritas.New(2, 1)), sample(2000))
	discard := []io.Writer{io.Discard}
	calls := map[string]func() error{
		"Encode":      func() error { return streams.Encode(readers(shards[:2]), discard) },
		"Verify":      func() error { _, err := streams.Verify(readers(shards)); return err },
		"Reconstruct": func() error { return streams.Reconstruct(append(readers(shards[:2]), nil), []io.Writer{2: io.Discard}) },
		"failing":     func() error { return streams.Encode(readers([][]byte{{1}, {}}), discard) },
	}
	expected := map[string]error{"failing": paritas.ErrShardSize}
	for name, call := range calls {
		bytes := allocated(func() { expectError(t, call(), expected[name]) })
		if bytes > 64<<10 { // a block of one stream has 4 MiB
			t.Errorf("%s allocates %d bytes", name, bytes)
		}
	}
}

// interrupted is a writer that calls a function before it takes bytes.
type interrupted struct {
	io.Writer
	before func()
}

func (i interrupted) Write(given []byte) (int, error) {
	i.before()
	return i.Writer.Write(given)
}

func TestCallsAtTheSameTimeShareNoBlocks(t *testing.T) {
	streams := must[paritas.StreamEncoder](t)(paritas.NewStream(2, 1))
	encoder := must[paritas.Encoder](t)(paritas.New(2, 1))
	outer, inner := encoded(t, encoder, sample(2000)), encoded(t, encoder, sample(1998))
	encode := func(shards [][]byte, before func()) {
		var parity bytes.Buffer
		expectError(t, streams.Encode(readers(shards[:2]), []io.Writer{interrupted{&parity, before}}), nil)
		if !bytes.Equal(parity.Bytes(), shards[2]) {
			t.Errorf("another parity of %d bytes", len(shards[2]))
		}
	}
	for range 2 {
		encode(outer, func() { encode(inner, func() {}) })
	}
}

// short is a writer that takes less than it is given, and does not say so.
type short struct{}

func (short) Write(given []byte) (int, error) { return len(given) / 2, nil }

// The code of Leopard takes bytes one by one, but shards have whole lines.
func TestLeopardsBlocksAreWholeLines(t *testing.T) {
	for _, option := range []paritas.Option{paritas.WithStreamBlockSize(100), paritas.WithAutoGoroutines(1000)} {
		leopard := paritas.WithLeopardGF(true)
		streams := must[paritas.StreamEncoder](t)(paritas.NewStream(5, 3, leopard, option))
		shards := encoded(t, must[paritas.Encoder](t)(paritas.New(5, 3, leopard)), sample(5*6400))
		parity, made := writers(3)
		if err := streams.Encode(readers(shards[:5]), parity); err != nil {
			t.Fatal(err)
		}
		for number, buffer := range made {
			if !bytes.Equal(buffer.Bytes(), shards[5+number]) {
				t.Fatalf("streams make another parity shard %d", number)
			}
		}
	}
}

func TestStreamsThatFailAreNamed(t *testing.T) {
	streams := must[paritas.StreamEncoder](t)(paritas.NewStream(3, 2))
	broken := errors.New("broken")
	shards := [][]byte{sample(100), sample(100), sample(100)}
	given := readers(shards)
	given[1] = io.MultiReader(bytes.NewReader(shards[1][:50]), iotest.ErrReader(broken))
	parity, _ := writers(2)
	var reading paritas.StreamReadError
	if err := streams.Encode(given, parity); !errors.As(err, &reading) || reading.Stream != 1 || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	var writing paritas.StreamWriteError
	parity[1] = failing{broken}
	if err := streams.Encode(readers(shards), parity); !errors.As(err, &writing) || writing.Stream != 1 {
		t.Errorf("got %v", err)
	}
	parity[1] = short{}
	if err := streams.Encode(readers(shards), parity); !errors.As(err, &writing) || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
	var first bytes.Buffer
	if err := streams.Split(bytes.NewReader(shards[0]), []io.Writer{&first, nil, &first}, 100); !errors.As(err, &writing) || first.Len() > 0 {
		t.Errorf("got %v and %d bytes", err, first.Len())
	}
	shards[2] = shards[2][:99]
	parity, _ = writers(2)
	if err := streams.Encode(readers(shards), parity); !errors.Is(err, paritas.ErrShardSize) {
		t.Errorf("got %v", err)
	}
	given = readers(shards)
	given[2] = nil
	if err := streams.Encode(given, parity); !errors.As(err, &reading) || reading.Stream != 2 {
		t.Errorf("got %v", err)
	}
	fill, _ := writers(5)
	if err := streams.Reconstruct(append(readers(shards), nil, nil), fill); !errors.Is(err, paritas.ErrReconstructMismatch) {
		t.Errorf("got %v", err)
	}
	pieces, _ := writers(3)
	if err := streams.Split(bytes.NewReader(shards[0]), pieces, 101); !errors.Is(err, paritas.ErrShortData) {
		t.Errorf("got %v", err)
	}
}

// What follows in a source is not padding, and a source that ends early is not filled up.
func TestSplitTakesTheGivenSizeAlone(t *testing.T) {
	streams := must[paritas.StreamEncoder](t)(paritas.NewStream(2, 1))
	split := func(source io.Reader) (string, error) {
		pieces, buffers := writers(2)
		err := streams.Split(source, pieces, 5)
		return buffers[0].String() + "|" + buffers[1].String(), err
	}
	longer := bytes.NewBufferString("abcdefgh")
	if pieces, err := split(longer); pieces != "abc|de\x00" || err != nil || longer.String() != "fgh" {
		t.Errorf("got %q and %v, and %q is left", pieces, err, longer)
	}
	for length := range 5 {
		_, err := split(bytes.NewReader(make([]byte, length)))
		expectError(t, err, paritas.ErrShortData)
	}
}

// A stream that is cut by less than the padding leaves bytes enough, but at wrong places.
func TestJoinNoticesStreamsThatWereCut(t *testing.T) {
	for _, unit := range []int{1, 64} {
		for _, data := range []int{2, 3, 5} {
			streams := must[paritas.StreamEncoder](t)(paritas.NewStream(data, 2, paritas.WithLeopardGF(unit == 64)))
			join := func(number, length, outSize int) error {
				shards := slices.Repeat([][]byte{sample(1024)}, data)
				shards[number] = shards[number][:length]
				return streams.Join(io.Discard, readers(shards), int64(outSize))
			}
			padding := data*unit - 1
			size := 1024*data - padding
			for number := range data - 1 {
				for cut := 1; cut <= padding; cut++ {
					expectError(t, join(number, 1024-cut, size), paritas.ErrShardSize)
				}
				expectError(t, join(number, 1024-padding-1, size), paritas.ErrShortData)
			}
			expectError(t, join(0, 0, 1024), paritas.ErrShardSize)
			for _, bytes := range []int{0, 10, 1024, 1025, size} {
				expectError(t, join(data-1, 1024-padding, bytes), nil)
			}
		}
	}
}

// A stream may stay open after the bytes that are asked for, or belong to something else from there on.
func TestJoinReadsNothingBeyondItsSize(t *testing.T) {
	streams := must[paritas.StreamEncoder](t)(paritas.NewStream(2, 1))
	for second := range 6 { // bytes that are taken from the second stream
		object := sample(4 + second)
		open, writer := io.Pipe()
		go writer.Write(append(bytes.Clone(object[4:]), "rest"...))
		var joined bytes.Buffer
		err := streams.Join(&joined, []io.Reader{bytes.NewReader(object[:4]), open}, int64(len(object)))
		if !bytes.Equal(joined.Bytes(), object) {
			t.Errorf("%d bytes: other ones came back", len(object))
		}
		if second <= 4 {
			expectError(t, err, nil)
		} else {
			expectError(t, err, paritas.ErrShardSize)
		}
		rest := make([]byte, 4)
		if _, err := io.ReadFull(open, rest); err != nil || string(rest) != "rest" {
			t.Errorf("%d bytes: then follows %q, %v", len(object), rest, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
