package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// load merges the kubeconfig files. Each file is read first, because clientcmd silently skips missing ones if there are several.
func (c Config) load() (*api.Config, error) {
	field, paths := "config_paths", c.ConfigPaths
	if c.ConfigPath != "" {
		field, paths = "config_path", []string{c.ConfigPath}
	}
	if len(paths) == 0 {
		return api.NewConfig(), nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{}
	for _, path := range paths {
		path, err := expandHome(path)
		if err == nil {
			_, err = clientcmd.LoadFromFile(path)
		}
		if err != nil {
			return nil, &ConfigError{Field: field, Err: fmt.Errorf("the kubeconfig %s can't be used: %w", path, err)}
		}
		rules.Precedence = append(rules.Precedence, path)
	}
	merged, err := rules.Load()
	if err != nil {
		return nil, &ConfigError{Field: field, Err: err}
	}
	return merged, nil
}

func expandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path, fmt.Errorf("the home folder of ~ is not known: %w", err)
	}
	return filepath.Join(home, rest), nil
}

// checkNames checks that the configured context, user and cluster are in the files.
func (c Config) checkNames(files *api.Config) error {
	context := c.ConfigContext
	if context == "" {
		context = files.CurrentContext
	}
	if _, ok := files.Contexts[context]; context != "" && !ok {
		return missing("config_context", "context", context, files.Contexts)
	}
	if _, ok := files.AuthInfos[c.ConfigContextAuthInfo]; c.ConfigContextAuthInfo != "" && !ok {
		return missing("config_context_auth_info", "user", c.ConfigContextAuthInfo, files.AuthInfos)
	}
	if _, ok := files.Clusters[c.ConfigContextCluster]; c.ConfigContextCluster != "" && !ok {
		return missing("config_context_cluster", "cluster", c.ConfigContextCluster, files.Clusters)
	}
	return nil
}

func missing[T any](field, kind, name string, have map[string]T) error {
	return &ConfigError{Field: field, Err: fmt.Errorf("the kubeconfig has no %s %q; it has %s", kind, name, list(have))}
}

func list[T any](have map[string]T) string {
	if len(have) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(have)), ", ")
}
