package guestinit

// A build for another system sets GOOS, and pack runs on this one.
//go:generate env -u GOOS -u GOARCH go run ../programs/init/pack
