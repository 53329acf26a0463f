<?php
define( 'DB_NAME', 'shop' );
define( 'DB_USER', 'shop' );
define( 'DB_PASSWORD', 'vC8-Zinnia-41' );
define( 'AUTH_KEY', 'x!Q8v@L2m#R5t$W9z%K3n^H6y&J1c*F4' );
define( 'NONCE_SALT', 'put your unique phrase here' );
define( 'WP_DEBUG', false );
$table_prefix = 'wp_';
