package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a self-contained file with the contexts "admin" (the
// default) and "reader".
func writeKubeconfig(path string, creds credentials, port int) error {
	const cluster = "lab"
	config := api.NewConfig()
	config.Clusters[cluster] = &api.Cluster{Server: apiURL(port), CertificateAuthority: creds.ca.cert}
	config.AuthInfos["admin"] = &api.AuthInfo{ClientCertificate: creds.admin.cert, ClientKey: creds.admin.key}
	config.AuthInfos[readerUser] = &api.AuthInfo{Token: creds.readerToken}
	for user := range config.AuthInfos {
		config.Contexts[user] = &api.Context{Cluster: cluster, AuthInfo: user, Namespace: "default"}
	}
	config.CurrentContext = "admin"
	if err := api.FlattenConfig(config); err != nil {
		return fmt.Errorf("read the certificates for the kubeconfig: %w", err)
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode the kubeconfig: %w", err)
	}
	if err := writeSecret(path, content); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}
