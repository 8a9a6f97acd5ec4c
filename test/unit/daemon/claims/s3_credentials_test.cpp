#include "daemon/claims/s3_credentials.h"

#include <map>

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

const char* credentials_file =
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
  CHECK(ini_value(credentials_file, "default", "aws_secret_access_key") == "S/D+=");
  CHECK(ini_value(credentials_file, "work", "aws_access_key_id") == "AKW");
  CHECK(ini_value(credentials_file, "work", "aws_session_token") == "TW");
  CHECK_FALSE(ini_value(credentials_file, "default", "region"));
  CHECK_FALSE(ini_value(credentials_file, "nobody", "aws_access_key_id"));
  CHECK_FALSE(ini_value("[a\nk=1", "a", "k"));
  CHECK_FALSE(ini_value("k = 1", "", "k"));
}

TEST_CASE("credentials come from the configuration, the environment, then the file", "[s3]") {
  TemporaryDirectory folder;
  write_text(folder.file("credentials"), credentials_file);
  const Variables file{{"AWS_SHARED_CREDENTIALS_FILE", folder.file("credentials")}};
  Variables both = file;
  both["AWS_ACCESS_KEY_ID"] = "AKE";
  both["AWS_SECRET_ACCESS_KEY"] = "SE";
  both["AWS_SESSION_TOKEN"] = "TE";

  config::S3Store store;
  store.access_key = "AKC";
  store.secret_key = "SC";
  auto found = find_s3_credentials(store, environment(both));
  CHECK(found.value().access_key == "AKC");
  CHECK(found.value().session_token.empty());  // the environment's belongs to the environment's keys

  store = {};
  found = find_s3_credentials(store, environment(both));
  CHECK(found.value().access_key == "AKE");
  CHECK(found.value().secret_key == "SE");
  CHECK(found.value().session_token == "TE");

  found = find_s3_credentials(store, environment(file));
  CHECK(found.value().access_key == "AKD");
  CHECK(found.value().secret_key == "S/D+=");

  Variables work = file;
  work["AWS_PROFILE"] = "work";
  found = find_s3_credentials(store, environment(work));
  CHECK(found.value().access_key == "AKW");
  CHECK(found.value().session_token == "TW");
}

TEST_CASE("no credentials at all is an error that says where was looked", "[s3]") {
  TemporaryDirectory folder;
  const config::S3Store store;
  auto found = find_s3_credentials(store, environment({{"HOME", folder.path()}}));
  CHECK_THAT(found.error(), ContainsSubstring(folder.path() + "/.aws/credentials"));
  CHECK_THAT(find_s3_credentials(store, environment({})).error(), ContainsSubstring("HOME"));
  write_text(folder.file("credentials"), credentials_file);
  found = find_s3_credentials(store, environment({{"AWS_SHARED_CREDENTIALS_FILE", folder.file("credentials")},
                                                  {"AWS_PROFILE", "empty"}}));
  CHECK_THAT(found.error(), ContainsSubstring("profile 'empty'"));
  CHECK(found.error().find("S/D") == std::string::npos);
}

TEST_CASE("the region likewise, and us-east-1 in the end", "[s3]") {
  TemporaryDirectory folder;
  write_text(folder.file("credentials"), credentials_file);
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
