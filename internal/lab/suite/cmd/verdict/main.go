// Command verdict judges a tier's run by the events of go test -json on its standard input, as run.sh calls it. It prints a line
// FLAKE <test> <tier> <commit> for each test that passed only when it was repeated, and fails unless all tests of the tier have passed.
package main

import (
	"fmt"
	"os"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/suite"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: verdict <tier>|match <commit>")
		os.Exit(2)
	}
	if err := verdict(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func verdict(tier, commit string) error {
	var wanted []suite.Test
	if tier != "match" {
		all, err := suite.Tests()
		if err != nil {
			return err
		}
		shards, err := suite.Shards()
		if err != nil {
			return err
		}
		if wanted, err = suite.InTier(tier, all, shards); err != nil {
			return err
		}
	}
	flakes, err := suite.Verdict(os.Stdin, wanted)
	for _, test := range flakes {
		fmt.Println("FLAKE", test, tier, commit)
	}
	return err
}
