package tfvalue

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// objectName is the form of the names of most Kubernetes objects (RFC 1123 subdomain).
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// ObjectName refuses strings that Kubernetes would not accept as the name of an object.
func ObjectName() []validator.String {
	return []validator.String{stringvalidator.RegexMatches(objectName, "must be a name as Kubernetes accepts it")}
}
