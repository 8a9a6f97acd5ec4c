// Where an S3 store's credentials come from, and how those who give them answer.
#include <map>

#include "daemon/claims/s3/s3_credentials_container.h"
#include "daemon/claims/s3/s3_credentials_file.h"
#include "daemon/claims/s3/s3_credentials_instance.h"
#include "daemon/claims/s3/s3_credentials_json.h"
#include "daemon/claims/s3/s3_credentials_provider.h"
#include "daemon/claims/s3/s3_credentials_web_identity.h"
#include "daemon/claims/s3/s3_environment.h"

#include "test/unit/daemon/claims/store_fixture.h"

using namespace bellhop;

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment(const Variables& variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

const char* shared_file_text =
    "# made by a tool\r\n"
    "[default]\n"
    "aws_access_key_id = AKD\n"
    "aws_secret_access_key=S/D+=\n"
    "\n"
    "[ work ]\n"
    "; a comment\n"
    "aws_access_key_id =AKW\r\n"
    "aws_secret_access_key = SW\n"
    "aws_session_token = TW\n"
    "s3 =\n"
    "  aws_access_key_id = nested\n"
    "region = eu-central-1\n"
    "[empty]\n";

void write_text(const std::string& path, const std::string& text) {
  write_file(path, Buffer(text.begin(), text.end()));
}

}  // namespace

TEST_CASE("a value of an INI file's section", "[s3]") {
  CHECK(ini_value(shared_file_text, "default", "aws_secret_access_key") == "S/D+=");
  CHECK(ini_value(shared_file_text, "work", "aws_access_key_id") == "AKW");
  CHECK(ini_value(shared_file_text, "work", "aws_session_token") == "TW");
  CHECK_FALSE(ini_value(shared_file_text, "default", "region"));
  CHECK_FALSE(ini_value(shared_file_text, "nobody", "aws_access_key_id"));
  CHECK_FALSE(ini_value("[a\nk=1", "a", "k"));
  CHECK_FALSE(ini_value("k = 1", "", "k"));
}

TEST_CASE("the shared file's keys, by profile, read again when it is another file", "[s3]") {
  TemporaryDirectory folder;
  const std::string path = folder.file("credentials");
  write_text(path, shared_file_text);
  S3CredentialsFile file(environment({{"AWS_SHARED_CREDENTIALS_FILE", path}}));
  CHECK(file.read().value() == S3Credentials{"AKD", "S/D+="});
  CHECK_FALSE(file.has_changed(10000));
  write_text(path, "[default]\naws_access_key_id = new\naws_secret_access_key = s\n");
  CHECK_FALSE(file.has_changed(10500));  // looked at once a second
  CHECK(file.has_changed(11500));
  CHECK(file.read().value().access_key == "new");
  CHECK_FALSE(file.has_changed(13000));

  write_text(path, shared_file_text);
  S3CredentialsFile work(environment({{"AWS_SHARED_CREDENTIALS_FILE", path}, {"AWS_PROFILE", "work"}}));
  CHECK(work.read().value() == S3Credentials{"AKW", "SW", "TW"});
  S3CredentialsFile empty(environment({{"AWS_SHARED_CREDENTIALS_FILE", path}, {"AWS_PROFILE", "empty"}}));
  CHECK_THAT(empty.read().error(), ContainsSubstring("profile 'empty'"));
  CHECK(empty.read().error().find("S/D") == std::string::npos);
  CHECK_THAT(S3CredentialsFile(environment({{"HOME", folder.path()}})).read().error(),
             ContainsSubstring(folder.path() + "/.aws/credentials"));
  CHECK_THAT(S3CredentialsFile(environment({})).read().error(), ContainsSubstring("HOME"));
  // A folder, or a pipe that nobody writes to, is no file.
  CHECK_THAT(S3CredentialsFile(environment({{"AWS_SHARED_CREDENTIALS_FILE", folder.path()}})).read().error(),
             ContainsSubstring("is not there"));
}

TEST_CASE("the configuration's keys go before the environment's, each set as a whole", "[s3]") {
  auto loop = CurlLoop::open();
  REQUIRE(loop);
  const auto both = environment(
      {{"AWS_ACCESS_KEY_ID", "AKE"}, {"AWS_SECRET_ACCESS_KEY", "SE"}, {"AWS_SESSION_TOKEN", "TE"}});
  config::S3Store store;
  const auto in_use = [&] {
    const auto provider = S3CredentialsProvider::open("s", store, both, *loop.value());
    CHECK_FALSE(provider.value()->renew(*provider.value()->now()));  // they stay as they are
    return *provider.value()->now();
  };
  CHECK(in_use() == S3Credentials{"AKE", "SE", "TE"});
  store.access_key = "AKC";
  store.secret_key = "SC";
  CHECK(in_use() == S3Credentials{"AKC", "SC"});
}

TEST_CASE("a start with no place that keys could come from is an error that says where was looked", "[s3]") {
  auto loop = CurlLoop::open();
  REQUIRE(loop);
  TemporaryDirectory folder;
  const auto error_of = [&](Variables variables) {
    variables["HOME"] = folder.path();
    return S3CredentialsProvider::open("s", {}, environment(variables), *loop.value()).error();
  };
  const std::string error = error_of({{"AWS_EC2_METADATA_DISABLED", "true"}});
  for (const char* part : {"AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "container", "AWS_EC2_METADATA_DISABLED"})
    CHECK_THAT(error, ContainsSubstring(part));
  CHECK_THAT(error, ContainsSubstring(folder.path() + "/.aws/credentials"));
  CHECK_THAT(error_of({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://keys.example/x"}}),
             ContainsSubstring("use https"));
}

TEST_CASE("which container's endpoints are asked, as AWS's SDKs rule", "[s3]") {
  const auto url = [](const char* variable, const char* value) {
    return container_credentials_url(environment({{variable, value}}));
  };
  constexpr const char* full = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  constexpr const char* relative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
  CHECK(container_credentials_url(environment({})).value().empty());
  CHECK(url(relative, "/v2/credentials/1").value() == "http://169.254.170.2/v2/credentials/1");
  CHECK_FALSE(url(relative, "@evil.example/"));
  for (const char* good :
       {"https://keys.example/x", "http://127.0.0.1:8080/x", "http://127.1.2.3/x", "http://localhost/x",
        "http://localhost:1", "http://[::1]:80/x", "http://169.254.170.2/x",
        "http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/v1/credentials"}) {
    INFO(good);
    CHECK(url(full, good).value() == good);
  }
  for (const char* bad :
       {"http://keys.example/x", "http://169.254.169.254/x", "http://localhost.evil.example/x",
        "http://127.0.0.1@evil.example/x", "http://127.0.0.1.evil.example/x", "http://[fd00:ec2::24]/x",
        "http://128.0.0.1", "http://", "ftp://127.0.0.1/x", "127.0.0.1", "http://2130706433/x",
        "http://127.0.0.1\r\nx: y/"}) {
    INFO(bad);
    CHECK_FALSE(url(full, bad));
  }
}

TEST_CASE("keys in JSON", "[s3]") {
  const std::string whole =
      R"({"Code": "Success", "AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T", )"
      R"("Expiration": "2026-11-30T12:00:01Z"})";
  const auto found = read_json_credentials(whole);
  CHECK(found.value() == S3Credentials{"A", "S", "T", 1796040001});
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(read_json_credentials(whole.substr(0, size)));
  CHECK(read_json_credentials(R"( {"AccessKeyId": "A", "SecretAccessKey": "S"} )").value() ==
        S3Credentials{"A", "S"});
  CHECK_THAT(read_json_credentials(R"({"code": "NoRole", "Message": "there is none"})").error(),
             ContainsSubstring("NoRole: there is none"));
  const auto odd = read_json_credentials(R"({"AccessKeyId": "A\r\nx: y", "SecretAccessKey": "secret"})");
  CHECK(odd.error().find("secret") == std::string::npos);
  CHECK_FALSE(read_json_credentials(R"({"AccessKeyId": "A", "SecretAccessKey": "S", "Expiration": "soon"})"));
  CHECK_FALSE(read_json_credentials(R"(["AccessKeyId"])"));
  CHECK_FALSE(read_json_credentials(std::string(60000, '[')));
}

TEST_CASE("keys in STS's XML, and where STS is", "[s3]") {
  const std::string whole =
      "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
      "<AccessKeyId>A</AccessKeyId><SecretAccessKey>S&amp;</SecretAccessKey><SessionToken>T</SessionToken>"
      "<Expiration>2026-11-30T12:00:01Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
      "</AssumeRoleWithWebIdentityResponse>";
  CHECK(read_web_identity_answer(whole).value() == S3Credentials{"A", "S&", "T", 1796040001});
  const size_t needed = whole.find("</AssumeRoleWithWebIdentityResult>") + 34;
  for (size_t size = 0; size < needed; ++size) CHECK_FALSE(read_web_identity_answer(whole.substr(0, size)));
  CHECK(sts_endpoint(environment({}), "eu-west-1") == "https://sts.eu-west-1.amazonaws.com/");
  CHECK(sts_endpoint(environment({}), "cn-north-1") == "https://sts.cn-north-1.amazonaws.com.cn/");
  CHECK(sts_endpoint(environment({{"AWS_ENDPOINT_URL_STS", "http://sts.local:1"}}), "r") ==
        "http://sts.local:1/");
}

TEST_CASE("the region likewise, and us-east-1 in the end", "[s3]") {
  TemporaryDirectory folder;
  write_text(folder.file("credentials"), shared_file_text);
  write_text(folder.file("config"), "[default]\nregion = eu-north-1\n[profile work]\nregion = eu-south-1\n");
  config::S3Store store;
  CHECK(find_s3_region(store, environment({})) == "us-east-1");
  Variables files{{"AWS_SHARED_CREDENTIALS_FILE", folder.file("credentials")},
                  {"AWS_CONFIG_FILE", folder.file("config")}};
  CHECK(find_s3_region(store, environment(files)) == "eu-north-1");
  files["AWS_PROFILE"] = "work";
  CHECK(find_s3_region(store, environment(files)) == "eu-south-1");
  files["AWS_CONFIG_FILE"] = "/nowhere";
  CHECK(find_s3_region(store, environment(files)) == "eu-central-1");
  files["AWS_DEFAULT_REGION"] = "ap-south-1";
  CHECK(find_s3_region(store, environment(files)) == "ap-south-1");
  files["AWS_REGION"] = "ap-east-1";
  CHECK(find_s3_region(store, environment(files)) == "ap-east-1");
  store.region = "eu-west-1";
  CHECK(find_s3_region(store, environment(files)) == "eu-west-1");
}
