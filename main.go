// Command terraform-provider-virtclaim provides virtual machines on plain libvirt hosts with the storage of a Kubernetes cluster. It is
// started by Terraform, and not run manually.
package main

import (
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/provider"
)

// version is set by the linker.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "run so that a debugger can be attached")
	flag.Parse()
	var opts []tf6server.ServeOpt
	if *debug {
		opts = append(opts, tf6server.WithManagedDebug())
	}
	newServer := func() tfprotov6.ProviderServer { return provider.NewServer(version) }
	if err := tf6server.Serve("registry.terraform.io/virtclaim/virtclaim", newServer, opts...); err != nil {
		log.Fatal(err)
	}
}
