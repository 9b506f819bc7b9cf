module oracle

go 1.24

require github.com/klauspost/reedsolomon v1.14.1

require github.com/klauspost/cpuid/v2 v2.3.0 // indirect
