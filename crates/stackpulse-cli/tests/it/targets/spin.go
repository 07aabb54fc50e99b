// A Go program with a known chain. usage: spin SECONDS
package main

import (
	"os"
	"strconv"
	"time"
)

var sink uint64

//go:noinline
func goLeaf(n int) {
	for i := 0; i < n; i++ {
		sink = sink*33 + 17
	}
}

//go:noinline
func goOuter(end time.Time) {
	for time.Now().Before(end) {
		goLeaf(2000000)
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	goOuter(time.Now().Add(time.Duration(seconds * float64(time.Second))))
}
