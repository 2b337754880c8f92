//go:build acc

package disk_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A machine's log is not written to a disk of another configuration, neither when the machine is created nor when it is changed.
func TestAccDisk_NoMachineLogsIntoIt(t *testing.T) {
	l := acctest.Lab(t)
	theirs := acctest.NewCLI(t)
	theirs.Write("main.tf", acctest.Provider(l, "theirs")+disk("root", "format = \"raw\"\n size = \"1Mi\""))
	theirs.Must("apply", "-auto-approve", "-no-color")
	config := func(console acctest.Console, more string) string {
		return acctest.Provider(l, "ours") + bare(fmt.Sprintf("serial = { log_file = %q }\n  %s", console.Path(), more))
	}
	console := acctest.NewConsole(t)
	refused := message("serial.log_file is "+file(l, "root"), "volume root of the storage pool ssd", "Name another file")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(acctest.ConsoleAt(file(l, "root")), ""), ExpectError: refused},
			{Config: config(console, ""), Check: resource.TestCheckResourceAttr(theMachine, "serial.log_file", console.Path())},
			{Config: config(acctest.ConsoleAt(file(l, "root")), "allow_restart = true"), ExpectError: refused},
			{Config: config(console, "")},
			destroyBare(t, l, config(console, "")),
		},
	})
	if got := read(t, file(l, "root")); got != string(make([]byte, 1<<20)) {
		t.Errorf("the disk begins with %q", got[:min(len(got), 40)])
	}
	theirs.Must("destroy", "-auto-approve", "-no-color")
}
