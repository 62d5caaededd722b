-- Logins of the service and of the worker, each with the rights of its role alone. Run once, when the database is made;
-- docker-compose.yml gives the passwords.
\getenv service_password SERVICE_PASSWORD
\getenv worker_password WORKER_PASSWORD

create role semcache_app nologin;
create role semcache_worker nologin;
create role semcache_service_login login password :'service_password' in role semcache_app;
create role semcache_worker_login login password :'worker_password' in role semcache_worker;
