// Command kubelet is the kubelet of the lab's API server. It is a program of
// its own, so that what starts no node does not wait for its build: the two
// take 94 MB more than one program that is both.
package main

import (
	"context"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	os.Exit(cli.Run(app.NewKubeletCommand(context.Background())))
}
