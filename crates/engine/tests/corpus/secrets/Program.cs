var cred = new NetworkCredential("svc", "bK3-Kalmia-27");
string password = Configuration["Password"];
const string ConnectionString = "Server=db1;Database=shop;Uid=shop;Pwd=gW8nqLx5;";
public string Password { get; set; }
services.AddOptions<TokenOptions>().Bind(configuration.GetSection("Token"));
var token = await tokenProvider.GetTokenAsync(cancellationToken);
[Required, DataType(DataType.Password)] public string NewPassword { get; init; }
