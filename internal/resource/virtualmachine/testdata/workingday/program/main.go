// Command program is what the made-up images of the working day run: a server, a job, or a change of user.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "as": // as <uid> <program> [arguments]
		id, _ := strconv.Atoi(os.Args[2])
		for _, err := range []error{syscall.Setgroups(nil), syscall.Setgid(id), syscall.Setuid(id), syscall.Exec(os.Args[3], os.Args[3:], os.Environ())} {
			if err != nil {
				panic(err)
			}
		}
	case "job": // job <seconds> <exit code>
		seconds, _ := strconv.Atoi(os.Args[2])
		code, _ := strconv.Atoi(os.Args[3])
		fmt.Println("job begins for", seconds)
		time.Sleep(time.Duration(seconds) * time.Second)
		os.Exit(code)
	case "serve":
		fmt.Println("serving as", os.Getuid())
		fmt.Println(http.ListenAndServe(":80", http.NotFoundHandler()))
		os.Exit(1)
	}
}
