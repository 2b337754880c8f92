package image

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// login are credentials for a registry.
type login struct {
	authn.Authenticator
	// missing tells that there are none because the program that has them is missing; empty otherwise.
	missing string
}

// dockerLogin takes credentials from Docker's configuration, or Podman's. Without the program that has them there are none, because most
// images are public. Its errors replace those of Docker's library, which contain all output of a credential helper.
func dockerLogin(ctx context.Context, repository name.Repository) (login, error) {
	anonymous := login{Authenticator: authn.Anonymous}
	// The registry alone may have another helper.
	for _, target := range []authn.Resource{repository, repository.Registry} {
		auth, err := authn.Resolve(ctx, authn.DefaultKeychain, target)
		if err == nil {
			anonymous.Authenticator = auth
			return anonymous, nil
		}
		config, err := readDockerConfig()
		if err != nil {
			return anonymous, err
		}
		program := config.helper(target.String())
		if program == "" {
			return anonymous, fmt.Errorf("the Docker configuration %s has an entry that can't be read for %s: repeat docker login",
				config.file, target)
		}
		if _, err := exec.LookPath(program); err == nil {
			return anonymous, fmt.Errorf("the credential helper %s, which %s names, fails. See what it answers: echo %s | %s get",
				program, config.file, target.RegistryStr(), program)
		}
		anonymous.missing = fmt.Sprintf("The credential helper %s, which %s names, is not installed: install it in PATH, set username "+
			"and password, or remove it from the file and repeat docker login", program, config.file)
	}
	return anonymous, nil
}

// dockerConfig is the part of a configuration that names programs.
type dockerConfig struct {
	file        string
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

func readDockerConfig() (dockerConfig, error) {
	config := dockerConfig{file: dockerConfigFile()}
	text, err := os.ReadFile(config.file)
	if err != nil {
		return config, fmt.Errorf("the Docker configuration can't be read: %w", err)
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return config, fmt.Errorf("the Docker configuration %s is no valid JSON of one: %w", config.file, err)
	}
	return config, nil
}

// helper is the program that has the credentials for that key; empty if the file has them.
func (d dockerConfig) helper(key string) string {
	if key == name.DefaultRegistry {
		key = authn.DefaultAuthKey
	}
	if suffix := cmp.Or(d.CredHelpers[key], d.CredsStore); suffix != "" {
		return "docker-credential-" + suffix
	}
	return ""
}

// dockerConfigFile is the file that authn.DefaultKeychain reads, which does not tell.
func dockerConfigFile() string {
	home, _ := os.UserHomeDir()
	usual, chosen := filepath.Join(home, ".docker", "config.json"), os.Getenv("DOCKER_CONFIG")
	if chosen != "" {
		chosen = filepath.Join(chosen, "config.json")
	}
	if isFile(usual) || isFile(chosen) {
		return cmp.Or(chosen, usual)
	}
	if chosen = os.Getenv("REGISTRY_AUTH_FILE"); isFile(chosen) {
		return chosen
	}
	const podman = "containers/auth.json"
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" && isFile(filepath.Join(runtime, podman)) {
		return filepath.Join(runtime, podman)
	}
	return filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), podman)
}

func isFile(path string) bool {
	is, err := os.Stat(path) //nolint:gosec // the user says where it is, as for docker
	return err == nil && !is.IsDir()
}
