package main
const apiToken = "q3Wz8Kx5Lv1Rt7Mb4Nc9Hs2Jd6Gf0PyE"
var password = flag.String("password", "", "password of the database")
cfg := Config{User: "shop", Password: "yB9-Elder-74"}
token := os.Getenv("TOKEN")
req.Header.Set("Authorization", "Bearer "+token)
req.Header.Set("X-Api-Key", "e1f7a05c9b3d4286e1f7a05c9b3d4287")
type Login struct {
	Password string `json:"password" validate:"required"`
	Token    string `json:"token,omitempty"`
}
if password != confirmPassword { return errors.New("passwords do not match") }
secretName := fmt.Sprintf("%s-token-%s", name, suffix)
tokenKind := token.IDENT
