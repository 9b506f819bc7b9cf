// Package paritas encodes and reconstructs shards with the erasure codes of Paritas.
//
// Its interface is that of github.com/klauspost/reedsolomon: [New] returns an [Encoder], with the
// same methods, the same errors and the same bytes, so that a program only changes an import. The
// errors are variables that may be compared with ==. README.md lists the names that are missing,
// and what else differs. [NewCode] makes an encoder for any other code of Paritas, by its name.
//
//	encoder, err := paritas.New(10, 4)
//	shards, err := encoder.Split(object)
//	err = encoder.Encode(shards)
//	shards[3], shards[11] = nil, nil
//	err = encoder.Reconstruct(shards)
//
// The work is done by libparitas, a shared library that is loaded when the first encoder is made:
// no C compiler is needed, and programs that are built with CGO_ENABLED=0 can use it. It is
// searched where the system searches for libraries, or at the path in the environment variable
// PARITAS_LIBRARY. A call costs a few tenths of a microsecond in addition to its work.
package paritas
