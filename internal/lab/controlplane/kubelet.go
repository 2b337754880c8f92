package main

import (
	"context"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

// kubeletArgument is the first argument that makes this program a kubelet: a
// program of its own would take 100 MB more for the same packages.
const kubeletArgument = "kubelet"

// runKubelet runs kubelet with its own flags, and returns its exit status.
func runKubelet(args []string) int {
	command := app.NewKubeletCommand(context.Background())
	command.SetArgs(args)
	os.Args = append([]string{kubeletArgument}, args...) // kubelet parses these itself
	return cli.Run(command)
}
