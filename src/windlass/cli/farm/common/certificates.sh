#!/bin/sh
# Makes an authority and a certificate for the servers, for farms without certificates of their own.
# Run it again before the certificate ends (397 days): the authority stays. Keep ca.key to yourself.
set -eu
cd "$(dirname "$0")"
umask 077
key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
if [ ! -e ca.key ]; then
  openssl req -x509 $key -days 3650 -subj "/CN=Authority of @@{host}" -keyout ca.key -out ca.pem \
    -addext keyUsage=critical,keyCertSign,cRLSign
fi
openssl req $key -subj "/CN=@@{host}" -keyout server.key -out server.csr
cat > server.ext <<END
subjectAltName=@@{alternatives}
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth
authorityKeyIdentifier=keyid
subjectKeyIdentifier=hash
END
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 397 \
  -extfile server.ext -out server.pem
cat server.pem server.key > haproxy.pem
rm server.csr server.ext
chmod 644 ca.pem server.pem
