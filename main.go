// Command terraform-provider-virtclaim provides virtual machines on plain libvirt hosts with the storage of a Kubernetes cluster. It is
// started by Terraform, and not run manually.
package main

import (
	"flag"
	"log"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/provider"
)

// Set by the linker of a release.
var (
	version = "dev"
	// volumeImage is the reference, by digest, of the volume image of this version; empty outside of releases.
	volumeImage string
)

func main() {
	debug := flag.Bool("debug", false, "run so that a debugger can be attached")
	flag.Parse()
	silenceFramework()
	floor := heapFloor()
	var opts []tf6server.ServeOpt
	if *debug {
		opts = append(opts, tf6server.WithManagedDebug())
	}
	release := provider.Release{Version: version, VolumeImage: volumeImage}
	newServer := func() tfprotov6.ProviderServer { return provider.NewServer(release) }
	err := tf6server.Serve("registry.terraform.io/virtclaim/virtclaim", newServer, opts...)
	runtime.KeepAlive(floor)
	if err != nil {
		log.Fatal(err)
	}
}

// silenceFramework limits the plugin framework's log to errors unless a log is requested. Otherwise the framework formats several lines for
// each value of a state, and Terraform parses them, even though they are discarded.
func silenceFramework() {
	if slices.ContainsFunc(os.Environ(), isLogging) {
		return
	}
	for _, subsystem := range []string{"TF_LOG_SDK", "TF_LOG_SDK_FRAMEWORK", "TF_LOG_SDK_PROTO"} {
		if err := os.Setenv(subsystem, "ERROR"); err != nil {
			log.Print(err)
		}
	}
}

// isLogging reports whether an environment variable requests a log of Terraform or its providers.
func isLogging(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return value != "" && (strings.HasPrefix(name, "TF_LOG") || strings.HasPrefix(name, "TF_ACC_LOG"))
}

// heapFloor returns memory that is never touched and so is not resident. The garbage collector counts it, and runs less often while the
// rest of the heap is small; a provider process is short-lived. It is nil if GOGC or GOMEMLIMIT is set.
func heapFloor() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, 64<<20)
}
