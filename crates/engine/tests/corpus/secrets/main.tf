provider "corp" {
  api_token = var.api_token
  secret    = data.vault_generic_secret.shop.data["secret"]
}
resource "aws_db_instance" "shop" {
  username = "shop"
  password = "Ux6-Meadow-12"
  port     = 5432
}
variable "db_password" {
  type      = string
  sensitive = true
  default   = "gK2-Thistle-77"
}
resource "random_password" "db" {
  length  = 24
  special = true
}
resource "aws_secretsmanager_secret_version" "shop" {
  secret_id     = aws_secretsmanager_secret.shop.id
  secret_string = jsonencode({ password = random_password.db.result })
}
output "password" {
  value = random_password.db.result
}
master_password = "${random_password.db.result}"
