package main

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdEndpoint is a socket in the state folder: this etcd has no users, so
// access is limited by the folder's permissions.
const etcdEndpoint = "unix://etcd.sock"

// startEtcd returns an etcd that accepts requests. The caller closes it.
func startEtcd(ctx context.Context) (*embed.Etcd, error) {
	client := []url.URL{{Scheme: "unix", Host: "etcd.sock"}}
	peer := []url.URL{{Scheme: "unix", Host: "etcd-peer.sock"}}

	config := embed.NewConfig()
	config.Dir = "etcd"
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = client, client
	config.ListenPeerUrls, config.AdvertisePeerUrls = peer, peer
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.EnableGRPCGateway = false
	// Data need to survive this process, not the machine.
	config.UnsafeNoFsync = true

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	etcd.Close()
	return nil, fmt.Errorf("wait for etcd: %w", err)
}
