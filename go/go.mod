module github.com/paritas/paritas/go

go 1.24

require github.com/ebitengine/purego v0.9.1
