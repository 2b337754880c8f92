package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// row is what is stored in the database.
const row = "stored before the machine was replaced"

func (s *demoEnvironment) prepareContainerImages(ctx context.Context) (variables map[string]string, err error) {
	say("packing Debian's nginx and PostgreSQL, and a kernel, into container images, and starting two hosts on a network")
	if s.images, err = s.AddContainerImages(ctx, s.logs); err != nil {
		return nil, err
	}
	s.images.Variables["TF_CLI_CONFIG_FILE"] = s.config
	return s.images.Variables, nil
}

// performContainerImages applies the example container-images, fetches the page, stores a row, and reads it after the database's machine
// was replaced.
func (s *demoEnvironment) performContainerImages(ctx context.Context, tf terraform) error {
	if err := tf.run(ctx, "apply", "-auto-approve"); err != nil {
		return err
	}
	say("waiting for the web server's page")
	page, err := s.images.Page(ctx)
	if err != nil {
		return err
	}
	if page != artefact.WebPage {
		return fmt.Errorf("the web server answers %q", page)
	}
	fmt.Printf("    %s", page)
	if err := s.showQuery(ctx, "CREATE TABLE notes (text text)"); err != nil {
		return err
	}
	if err := s.showQuery(ctx, "INSERT INTO notes VALUES ('"+row+"') RETURNING text", row); err != nil {
		return err
	}
	if err := tf.run(ctx, "plan", "-detailed-exitcode"); err != nil {
		return fmt.Errorf("a second plan must change nothing: %w", err)
	}
	if err := tf.run(ctx, "apply", "-auto-approve", "-replace=virtclaim_virtual_machine.database"); err != nil {
		return err
	}
	if err := s.showQuery(ctx, "SELECT text FROM notes", row); err != nil {
		return err
	}
	return tf.run(ctx, "destroy", "-auto-approve")
}

// showQuery has the database run a statement, whose output has to be these rows.
func (s *demoEnvironment) showQuery(ctx context.Context, statement string, rows ...string) error {
	say("psql: %s", statement)
	got, err := s.images.Query(ctx, statement)
	if err != nil {
		return err
	}
	if want := strings.Join(rows, "\n"); got != want {
		return fmt.Errorf("the database answers %q, not %q", got, want)
	}
	if got != "" {
		fmt.Println("    " + got)
	}
	return nil
}
