module github.com/paritas/paritas/go/compare

go 1.24

require (
	github.com/klauspost/reedsolomon v1.14.1
	github.com/paritas/paritas/go v0.0.0
)

require (
	github.com/ebitengine/purego v0.9.1 // indirect
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
)

replace github.com/paritas/paritas/go => ../
