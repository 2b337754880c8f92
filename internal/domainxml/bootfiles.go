package domainxml

// BootFiles are the paths of the kernel and the initial RAM disk that the domain boots directly; empty where it has none.
func (d *Domain) BootFiles() (kernel, initrd string) {
	if d == nil {
		return "", ""
	}
	return d.xml.OS.Kernel, d.xml.OS.Initrd
}
