package paritas_test

import (
	"sync"
	"sync/atomic"
	"testing"

	paritas "github.com/paritas/paritas/go"
)

// deep calls run when the stack of a goroutine has grown by about 100 bytes for each level.
//
//go:noinline
func deep(levels int, run func()) byte {
	var filler [64]byte
	filler[levels%64] = byte(levels)
	if levels == 0 {
		run()
		return filler[0]
	}
	return deep(levels-1, run) + filler[3]
}

// deeper is like deep, in finer steps.
//
//go:noinline
func deeper(levels int, run func()) byte {
	var filler [8]byte
	filler[levels%8] = byte(levels)
	if levels == 0 {
		run()
		return filler[0]
	}
	return deeper(levels-1, run) + filler[3]
}

// A call may grow the stack of its goroutine, which moves what lies on the stack. So what the library
// reads must not lie there. Stacks grow when they are full: calls are made at many depths, by several
// goroutines, each of which may get a stack that another one has left.
func TestNamesSurviveAGrowingStack(t *testing.T) {
	const spec = "backblaze:k=3,m=2"
	var failures atomic.Int64
	call := func() {
		encoder, err := paritas.NewCode(spec)
		if err != nil || encoder.(paritas.Extensions).Spec() != spec {
			failures.Add(1)
		}
	}
	var group sync.WaitGroup
	for range 100 {
		for coarse := range 60 {
			for fine := range 6 {
				group.Add(1)
				go func() {
					defer group.Done()
					deep(coarse, func() { deeper(fine, call) })
				}()
			}
		}
		group.Wait()
	}
	if count := failures.Load(); count > 0 {
		t.Errorf("%d calls read another name", count)
	}
}
