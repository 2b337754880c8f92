package reservation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// outages are errors of an API server that is unavailable or overloaded.
var outages = map[string]error{
	"nobody listens":    fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED),
	"it took too long":  errors.New("no answer within 30s"),
	"its etcd is away":  apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
	"it is unavailable": apierrors.NewServiceUnavailable("starting"),
	"it has much to do": apierrors.NewTooManyRequests("later", 1),
}

// final are errors for which a retry can't help.
var final = map[string]error{
	"forbidden":    apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "golden", errors.New("RBAC")),
	"unauthorized": apierrors.NewUnauthorized("who are you"),
	"invalid":      apierrors.NewBadRequest("what is that"),
	"untrusted":    fmt.Errorf("get: %w", &tls.CertificateVerificationError{Err: errors.New("unknown authority")}),
}

// until is a hook that fails with err while the time since now is less than d.
func until(d time.Duration, err error) func(int) error {
	start := time.Now()
	return func(int) error {
		if time.Since(start) < d {
			return err
		}
		return nil
	}
}

func reserved(t *testing.T) *fakeClaims {
	t.Helper()
	claims := newClaims()
	if err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t)); err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestReserve_ConflictRereadsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := newClaims()
		claims.write = func(n int) error {
			if n <= 20 {
				claims.change(func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{fmt.Sprintf("example.com/f%d", n)} })
			}
			return nil
		}
		if err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t)); err != nil {
			t.Fatal(err)
		}
		if claims.writes != 21 || claims.claim.Finalizers[0] != "example.com/f20" {
			t.Errorf("after %d writes the finalizers are %v", claims.writes, claims.claim.Finalizers)
		}
		claims.writes = 0
		if err := Release(t.Context(), claims, golden, "db", "n1", "uid-1"); err != nil || claims.writes != 21 {
			t.Errorf("%v after %d writes", err, claims.writes)
		}
	})
}

func TestReserve_FirstHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := newClaims()
		claims.write = func(n int) error {
			if n > 1 {
				return nil
			}
			return Reserve(t.Context(), claims, golden, binding("a", "x", volume.WriteExclusive), refusing(t))
		}
		err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t))
		checkHeld(t, err, binding("db", "n1", volume.WriteExclusive), []string{"a"})
	})
}

func TestReserve_EachAttemptResolvesConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := newClaims()
		claims.claim.Annotations = with(binding("db", "n0", volume.WriteExclusive).record())
		claims.write = func(n int) error {
			if n == 1 {
				claims.change(func(*corev1.PersistentVolumeClaim) {})
			}
			return nil
		}
		asked := 0
		err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), func(context.Context) (HolderState, error) {
			asked++
			return HolderState{Use: Use(asked)}, nil // first Ours, then Free: both join
		})
		if err != nil || asked != 2 || len(claims.holders()["db"]) != 2 {
			t.Errorf("%v after %d questions, and it is held by %v", err, asked, claims.holders())
		}
	})
}

func TestRelease_SurvivesOutage(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claims := reserved(t)
				claims.read, claims.write = until(4*time.Minute, outage), until(5*time.Minute, outage)
				start := time.Now()
				err := Release(t.Context(), claims, golden, "db", "n1", "uid-1")
				if err != nil || len(claims.holders()) > 0 {
					t.Errorf("%v, and it is held by %v", err, claims.holders())
				}
				if late := time.Since(start) - 5*time.Minute; late > 6*time.Second || claims.reads > 200 {
					t.Errorf("it came %s late and asked %d times", late, claims.reads)
				}
			})
		})
	}
}

func TestReserve_SurvivesShortOutage(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claims := newClaims()
				claims.read = until(15*time.Second, outage)
				if err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t)); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				claims.read = until(time.Hour, outage)
				err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t))
				if took := time.Since(start); !errors.Is(err, outage) || took > time.Minute {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

// The answer to a successful write may be lost.
func TestReserve_FindsOwnRecordAfterLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := newClaims()
		claims.lost = errors.New("connection reset")
		err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t))
		if err != nil || len(claims.patches) != 1 || Held(claims.claim, "db", "n1") == "" {
			t.Errorf("%v, and it wrote %v", err, claims.patches)
		}
		if err := Release(t.Context(), claims, golden, "db", "n1", "uid-1"); err != nil || len(claims.patches) != 2 {
			t.Errorf("%v, and it wrote %v", err, claims.patches)
		}
	})
}

func TestReserve_FinalErrorsAreNotRetried(t *testing.T) {
	for name, refusal := range final {
		t.Run(name, func(t *testing.T) {
			claims := reserved(t)
			refuse := func(int) error { return refusal }
			for _, hooks := range [][2]func(int) error{{refuse, nil}, {nil, refuse}} {
				claims.reads, claims.writes, claims.read, claims.write = 0, 0, hooks[0], hooks[1]
				if err := Release(t.Context(), claims, golden, "db", "n1", "uid-1"); !errors.Is(err, refusal) || claims.reads != 1 {
					t.Errorf("release: %v after %d reads", err, claims.reads)
				}
				err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.ReadShared), refusing(t))
				if !errors.Is(err, refusal) || claims.reads != 2 {
					t.Errorf("reserve: %v after %d reads", err, claims.reads)
				}
			}
		})
	}
}

func TestReserve_DeadlineKeepsLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := reserved(t)
		claims.read = until(time.Hour, outages["nobody listens"])
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Release(ctx, claims, golden, "db", "n1", "uid-1")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "vms/golden may still be reserved") {
			t.Errorf("got %v", err)
		}
	})
}

func TestReserve_RefusalsNameRemedy(t *testing.T) {
	tooLong := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind(), "golden", nil)
	tooLong.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeTooLong, Field: "metadata.annotations"}}
	for want, refusal := range map[string]error{
		"allow these credentials to patch persistentvolumeclaims, or set reserve_claims = false": final["forbidden"],
		"all annotations of the claim together may have 256 KiB":                                 tooLong,
	} {
		claims := newClaims()
		claims.write = func(int) error { return refusal }
		err := Reserve(t.Context(), claims, golden, binding("db", "n1", volume.WriteExclusive), refusing(t))
		if !errors.Is(err, refusal) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}

// The configuration may have reserve_claims = false already when it releases: the error names the command for the change itself.
func TestRelease_ForbiddenNamesCommand(t *testing.T) {
	claims := reserved(t)
	claims.write = func(int) error { return final["forbidden"] }
	err := Release(t.Context(), claims, golden, "db", "n1", "uid-1")
	if !errors.Is(err, final["forbidden"]) || strings.Contains(err.Error(), "reserve_claims") {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"allow these credentials to patch persistentvolumeclaims", "\n  kubectl patch pvc golden -n vms", `"virtclaim.io/binding.db":null`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}
