requests.get(url, auth=("svc", "kQ3-Heath-90"))
requests.get(url, auth=(user, password))
server.login("robot@corp.org", "hD8-Bracken-11")
server.login(os.environ["MAIL_USER"], os.environ["MAIL_PASSWORD"])
token = jwt.encode(claims, "pT7-Linden-48xQ", algorithm="HS256")
token = jwt.encode(claims, settings.SECRET_KEY, algorithm="HS256")
ACME_KEY = os.environ.get("ACME_KEY", "")
SENTRY_AUTH_TOKEN = os.environ["SENTRY_AUTH_TOKEN"]
airbrake.api_key = "5f0c77ab91d34e2860bf5a7c12e89d43"
deepgram = Deepgram(os.getenv("DEEPGRAM_API_KEY"))
