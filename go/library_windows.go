package paritas

import "syscall"

func openLibrary(name string) (uintptr, error) {
	library, err := syscall.LoadLibrary(name)
	return uintptr(library), err
}

func symbol(library uintptr, name string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(library), name)
}
