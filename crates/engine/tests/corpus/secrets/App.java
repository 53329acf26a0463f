public class App {
    private static final String DB_PASSWORD = "pH3-Clover-58";
    private static final String PASSWORD_PARAM = "password";
    private static final String TOKEN_HEADER = "X-Auth-Token";
    private static final String SECRET_ALIAS = "shop-signing-key";
    @Value("${shop.password}") private String password;
    private String token = null;
    public void setPassword(String password) { this.password = password; }
    Connection c = DriverManager.getConnection("jdbc:mysql://db1/shop?user=shop&password=dR6wnKx4", props);
    ds.setPassword("jT2-Daphne-35");
    ds.setPassword(System.getenv("DB_PASSWORD"));
    ds.setPassword(config.getString("password"));
    String passwordField = driver.findElement(By.id("password")).getText();
    throw new BadCredentialsException("Invalid username or password");
}
