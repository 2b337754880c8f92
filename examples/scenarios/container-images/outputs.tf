output "page" {
  description = "The web server's page."
  value       = "http://${split("/", var.addresses.web)[0]}/"
}

output "database" {
  description = "The database, for psql."
  value       = "postgresql://postgres@${split("/", var.addresses.database)[0]}/postgres"
}

output "digests" {
  description = "The images that the machines run."
  value       = { for name, disk in virtclaim_disk.root : name => disk.digest }
}
