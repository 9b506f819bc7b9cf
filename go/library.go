package paritas

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Outcomes of a call: numbers of paritas_status.
const (
	statusOK          = 0
	statusLost        = 2
	statusCheckFailed = 5
)

// functions are the addresses of the functions of libparitas that are called.
type functions struct {
	codecNew, codecFree, codecSpec      uintptr
	dataShards, parityShards, shardUnit uintptr
	strip, shardLen                     uintptr
	reconstruct, update, verify         uintptr
	prepareEncode, prepareDifference    uintptr
	sources, targets, run, preparedFree uintptr
	lastMessage, version                uintptr
}

// library loads libparitas once.
var library = sync.OnceValues(load)

func load() (*functions, error) {
	handle, err := open()
	if err != nil {
		return nil, err
	}
	var f functions
	names := map[string]*uintptr{
		"paritas_codec_new":           &f.codecNew,
		"paritas_codec_free":          &f.codecFree,
		"paritas_codec_spec":          &f.codecSpec,
		"paritas_codec_data_shards":   &f.dataShards,
		"paritas_codec_parity_shards": &f.parityShards,
		"paritas_codec_shard_unit":    &f.shardUnit,
		"paritas_codec_strip":         &f.strip,
		"paritas_codec_shard_len":     &f.shardLen,
		"paritas_prepare_encode":      &f.prepareEncode,
		"paritas_prepared_sources":    &f.sources,
		"paritas_prepared_targets":    &f.targets,
		"paritas_reconstruct":         &f.reconstruct,
		"paritas_update":              &f.update,
		"paritas_verify":              &f.verify,
		"paritas_prepare_difference":  &f.prepareDifference,
		"paritas_run":                 &f.run,
		"paritas_prepared_free":       &f.preparedFree,
		"paritas_last_message":        &f.lastMessage,
		"paritas_version":             &f.version,
	}
	for name, address := range names {
		if *address, err = symbol(handle, name); err != nil {
			return nil, fmt.Errorf("paritas: libparitas is too old, it has no %s: %w", name, err)
		}
	}
	return &f, nil
}

// open loads the library from PARITAS_LIBRARY, or from the places where the system searches.
func open() (uintptr, error) {
	names := []string{"libparitas.so.0", "libparitas.so"}
	switch runtime.GOOS {
	case "darwin":
		names = []string{"libparitas.0.1.dylib", "libparitas.dylib"}
	case "windows":
		names = []string{"paritas.dll"}
	}
	if path := os.Getenv("PARITAS_LIBRARY"); path != "" {
		names = []string{path}
	}
	var failures error
	for _, name := range names {
		handle, err := openLibrary(name)
		if err == nil {
			return handle, nil
		}
		failures = errors.Join(failures, err)
	}
	return 0, fmt.Errorf("paritas: install libparitas, or name it in PARITAS_LIBRARY: %w", failures)
}

// Version returns the version of libparitas, such as "0.1.0".
func Version() (string, error) {
	f, err := library()
	if err != nil {
		return "", err
	}
	text, _, _ := purego.SyscallN(f.version)
	return textAt(text), nil
}

// failure returns the error of a call that ended with a status. It must run on the thread of the call.
func (f *functions) failure(status uintptr) error {
	switch int32(status) {
	case statusOK:
		return nil
	case statusLost:
		return ErrTooFewShards
	}
	text, _, _ := purego.SyscallN(f.lastMessage)
	return &Error{Status: int(int32(status)), Message: textAt(text)}
}

// textAt copies a text that belongs to the library.
func textAt(address uintptr) string {
	start := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	if start == nil {
		return ""
	}
	length := 0
	for *(*byte)(unsafe.Add(start, length)) != 0 {
		length++
	}
	return strings.Clone(unsafe.String((*byte)(start), length))
}

// A call holds the addresses that the library gets: tables of pointers to shards, and whatever else
// addressOf has kept. It lies on the heap, so the memory that it points to does, too: it is neither
// moved when a stack grows nor freed before the call ends.
type call struct {
	sources, targets []unsafe.Pointer
	present          []bool
	kept             []unsafe.Pointer
}

var calls = sync.Pool{New: func() any { return new(call) }}

// pinned runs a call on one thread, because the library keeps the message of an error for each
// thread. The tables are empty at first, and are kept for later calls.
func (f *functions) pinned(run func(*call) uintptr) error {
	c := calls.Get().(*call)
	runtime.LockOSThread()
	err := f.failure(run(c))
	runtime.UnlockOSThread()
	clear(c.sources)
	clear(c.targets)
	clear(c.kept)
	c.sources, c.targets, c.present, c.kept = c.sources[:0], c.targets[:0], c.present[:0], c.kept[:0]
	calls.Put(c)
	return err
}

// pointers appends the addresses of shards; null for empty shards.
func pointers(table []unsafe.Pointer, shards [][]byte) []unsafe.Pointer {
	for _, shard := range shards {
		table = append(table, unsafe.Pointer(unsafe.SliceData(shard)))
	}
	return table
}

// addressOf returns the address of a value for the library, and keeps the value in place until the
// call ends. An address that is converted to a number in any other way may be that of memory on a
// stack, which moves when the stack grows.
func addressOf[T any](c *call, value *T) uintptr {
	c.kept = append(c.kept, unsafe.Pointer(value))
	return uintptr(unsafe.Pointer(value))
}

// first returns the address of a table, as addressOf does.
func first[T any](c *call, table []T) uintptr { return addressOf(c, unsafe.SliceData(table)) }
