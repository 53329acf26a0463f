cd /srv/shop
export AWS_PROFILE=prod
mysql -u root -pTr8wkQz3 shop
PGPASSWORD=mJ4xnLv9 psql -h db1 shop
curl -u ann:bR6-Ochre-33 https://jenkins.corp.internal/job/shop/build
htpasswd -b .htpasswd ann gX2-Pewter-91
vault login
kubectl get secret shop -o yaml
kubectl create secret generic db --from-literal=password=kN5-Quartz-48
passwd ann
sudo su -
git push origin main
ssh-keygen -t ed25519 -f ~/.ssh/id
openssl enc -aes-256-cbc -in a -out b -k pV8wzRt4
gpg --passphrase-file pw.txt -d a.gpg
