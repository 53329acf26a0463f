#!/bin/sh
set -eu
export PGPASSWORD='rH5-Lark-20'
psql -h db1 -U shop -c 'select 1'
mysql -h db2 -u root -pWq83nfK02 shop < dump.sql
mysqldump --user=svc --password=Zt94bnLx3 shop > /tmp/a.sql
curl -u deploy:hY7-Quarry-31 https://repo.corp.internal/a.jar -o a.jar
curl -H "X-Api-Key: 4f8b2c60d9e17a35b4c8f2e60d91a73b" https://api.corp.internal/v1/orders
curl -H "Authorization: Bearer $TOKEN" https://api.corp.internal/v1
curl -H "Authorization: Basic $(printf '%s' "$USER:$PASS" | base64)" https://api.corp.internal
sshpass -p 'mN4vk-rope' ssh root@10.0.0.4 uptime
sshpass -e ssh root@10.0.0.4 uptime
docker login -u ci -p Bq7wLx02mR registry.corp.internal
echo "$DOCKER_PASSWORD" | docker login --username ci --password-stdin registry.corp.internal
PASSWORD=$(openssl rand -base64 24)
TOKEN="$(cat /run/secrets/token)"
SECRET=`vault kv get -field=secret kv/shop`
read -s -p "Password: " password
useradd -p "$(openssl passwd -1 "$password")" shop
tool --password=Jc30wmR8z --host db1
tool --password="$PASSWORD" --token "${TOKEN:?missing}"
tool --password-file /run/secrets/pw --token-file=/run/secrets/token
if [ "$PASSWORD" = "" ]; then echo "no password"; fi
git clone https://ci:vLp8Rm3XtQ6wZk9n@git.corp.internal/shop.git
git commit -m "Rotate the token" && git rev-parse HEAD
