// Command terraform-provider-virtclaim gives virtual machines on plain libvirt hosts the storage of a Kubernetes
// cluster. Terraform starts it; it is not run by hand.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/provider"
)

// version is set by the linker.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "run so that a debugger can be attached")
	flag.Parse()
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/virtclaim/virtclaim",
		Debug:   *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}
