package cluster

import (
	"net/http"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestList_FollowsPages lists three pages of claims, with and without an expired token at the second.
func TestList_FollowsPages(t *testing.T) {
	for _, expired := range []bool{false, true} {
		var asked []string
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			asked = append(asked, query.Get("limit")+"/"+query.Get("continue"))
			page, _ := strconv.Atoi(query.Get("continue"))
			if expired && page == 1 {
				refuse(w, apierrors.NewResourceExpired("too old"))
				return
			}
			answer(w, http.StatusOK, pageOfClaims(page, query.Get("limit") == ""))
		})
		all, err := client.Claims(t.Context(), "vms")
		if err != nil || len(all) != 3 || all["c-2"].Name != "c-2" {
			t.Errorf("got %v, %v", all, err)
		}
		if !expired && len(asked) != 3 || asked[0] != "500/" {
			t.Errorf("it asked for %q", asked)
		}
	}
}

// pageOfClaims has one claim, or all three.
func pageOfClaims(page int, whole bool) *corev1.PersistentVolumeClaimList {
	list := &corev1.PersistentVolumeClaimList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaimList"}}
	for i := range 3 {
		if whole || i == page {
			list.Items = append(list.Items, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c-" + strconv.Itoa(i)}})
		}
	}
	if !whole && page < 2 {
		list.Continue = strconv.Itoa(page + 1)
	}
	return list
}
