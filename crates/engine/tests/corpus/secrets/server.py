import os
PASSWORD = os.environ["PASSWORD"]
TOKEN = os.getenv("TOKEN", "")
db = connect(host="db1", user="shop", password="mS7-Acacia-23")
auth = HTTPBasicAuth("svc", "nG5-Briar-97")
SECRET_KEY = "d4Xk8Lq1Vz6Rw3Mb9Nc2Hs7Jd0Gf5PyTe4Ua"
password: str = Field(..., min_length=12)
def login(user: str, password: str, token: Optional[str] = None) -> bool:
    if not password or password == "":
        raise ValueError("password must not be empty")
    hashed_password = bcrypt.hashpw(password.encode(), bcrypt.gensalt())
    token = secrets.token_urlsafe(32)
    payload = {"username": user, "password": password, "token": token}
    headers = {"Authorization": f"Bearer {token}", "X-Api-Key": settings.API_KEY}
    return check_password_hash(row["password"], password)
parser.add_argument("--password", help="password of the database user")
logger.info("password for %s changed", user)
PASSWORD_RE = re.compile(r"^(?=.*[A-Z])(?=.*\d).{12,}$")
fields = ["username", "password", "token", "secret"]
