// Package podwire is what the provider and the programs that run in pods say to each other: paths, headers, states and exit codes.
package podwire

// Requests, over HTTPS.
const (
	// Port takes the requests.
	Port = 8443
	// Path is that of a volume, and where the claim is mounted.
	Path = "/volume"
	// HealthPath is that of the readiness probe.
	HealthPath = "/healthz"
	// TokenHeader is the header with the token: the API server keeps Authorization for itself.
	TokenHeader = "Virtclaim-Token"
	// KeyHeader names the volume that is made on demand.
	KeyHeader = "Idempotency-Key"
	// ProtocolHeader has the version of the protocol of volumes on demand.
	ProtocolHeader = "Virtclaim-Protocol"
	// Protocol is that version.
	Protocol = "v1"
	// SecretPath is where the Secret of a pod that makes volumes on demand is mounted.
	SecretPath = "/var/run/virtclaim"
)

// ExitFilled is the exit code for a claim that has content, and was not written to.
const ExitFilled = 3

// The states of a volume.
const (
	Empty      = "empty"
	Filling    = "filling"
	Incomplete = "incomplete"
	IsFilled   = "filled"
)

// Filled is what is in a volume once it is complete. It is the termination message of a pod that has filled it, and the record beside
// disk.img.
type Filled struct {
	// Format is that of the image; the volume is raw.
	Format string `json:"format"`
	// Capacity is the size of the disk in bytes.
	Capacity int64 `json:"capacity"`
	// Digest is the hash of the image as it came, packed or not, as sha256:hex.
	Digest string `json:"digest"`
}

// Volume is the answer to a request that fills a volume, or looks at it.
type Volume struct {
	// State is empty, filling, incomplete or filled.
	State string `json:"state,omitempty"`
	*Filled
	// Bytes is how much of the disk is written.
	Bytes int64 `json:"bytes"`
	// Received is how much of the image has come, as it is sent.
	Received int64 `json:"received"`
	// Error is why the last try failed, or the volume may not be filled.
	Error string `json:"error,omitempty"`
}
