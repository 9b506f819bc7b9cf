package paritas

import (
	"errors"
	"fmt"
)

// The errors of the interface. They have the same meaning as the errors with the same names in
// github.com/klauspost/reedsolomon. Calls return these values themselves, so programs may compare
// errors with == or [errors.Is].
var (
	// ErrInvShardNum says that an encoder needs at least one data shard, and that the number of parity
	// shards must not be negative; or that there is no shard with this number.
	ErrInvShardNum = errors.New("there are fewer than 1 data shard or 0 parity shards, or no shard has the given number")
	// ErrMaxShardNum says that there are more than 256 shards, or too many for [WithLeopardGF].
	ErrMaxShardNum = errors.New("there can be at most 256 shards of data and parity; " +
		"for WithLeopardGF, the parity shards count as rounded up to a power of two")
	// ErrTooFewShards says that the number of shards is wrong, or that too few are present.
	ErrTooFewShards = errors.New("the number of shards is wrong, or too few of them are present")
	// ErrShardNoData says that no shard has any data.
	ErrShardNoData = errors.New("no shard has data")
	// ErrShardSize says that shards differ in length.
	ErrShardSize = errors.New("the shards differ in length")
	// ErrInvalidShardSize says that the length of the shards is not a multiple of the code's unit,
	// which [Extensions.ShardSizeMultiple] returns.
	ErrInvalidShardSize = errors.New("the length of the shards must be a multiple of ShardSizeMultiple()")
	// ErrInvalidInput says that arguments contradict each other, or that a shard is missing that is
	// needed for an update.
	ErrInvalidInput = errors.New("the arguments contradict each other, or a shard is missing")
	// ErrShortData says that there is less data than requested.
	ErrShortData = errors.New("there is too little data")
	// ErrReconstructRequired says that a data shard is missing, and must be reconstructed first.
	ErrReconstructRequired = errors.New("a data shard is missing: reconstruct it first")
	// ErrReconstructMismatch says that a shard is both to be read and to be written.
	ErrReconstructMismatch = errors.New("a shard cannot be both valid and to be filled")
	// ErrNotSupported is never returned: here every code has every call.
	ErrNotSupported = errors.New("the call is not supported")
)

// An Error is any other error that libparitas reports.
type Error struct {
	// Status is the number that the call returned, a paritas_status.
	Status int
	// Message names what is wrong, with its number.
	Message string
}

func (e *Error) Error() string { return "paritas: " + e.Message }

// A StreamReadError says which stream could not be read.
type StreamReadError struct {
	Err    error
	Stream int
}

func (e StreamReadError) Error() string {
	return fmt.Sprintf("stream %d cannot be read: %v", e.Stream, e.Err)
}

// String returns the same text as Error.
func (e StreamReadError) String() string { return e.Error() }

// Unwrap returns the error of the stream.
func (e StreamReadError) Unwrap() error { return e.Err }

// A StreamWriteError says which stream could not be written.
type StreamWriteError struct {
	Err    error
	Stream int
}

func (e StreamWriteError) Error() string {
	return fmt.Sprintf("stream %d cannot be written: %v", e.Stream, e.Err)
}

// String returns the same text as Error.
func (e StreamWriteError) String() string { return e.Error() }

// Unwrap returns the error of the stream.
func (e StreamWriteError) Unwrap() error { return e.Err }
