// Who is asking, in the headers between this server and an extension API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/aggregator/api_services.h"
#include "controlplane/apiserver/aggregator/extension_clients.h"

namespace keelson::apiserver {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(IdentityHeaders, NameTheWholeUser) {
  const User user{"jane", "7", {"dev", "system:authenticated"}, {{"scopes", {"a", "b"}}, {"x/y z", {"c"}}}};
  Result<http::Headers> headers = IdentityHeaders(user);
  ASSERT_TRUE(headers);
  const std::vector<std::pair<std::string, std::string>> all(headers->begin(), headers->end());
  EXPECT_THAT(all, ElementsAre(Pair("X-Remote-User", "jane"), Pair("X-Remote-Uid", "7"),
                               Pair("X-Remote-Group", "dev"), Pair("X-Remote-Group", "system:authenticated"),
                               Pair("X-Remote-Extra-scopes", "a"), Pair("X-Remote-Extra-scopes", "b"),
                               Pair("X-Remote-Extra-x%2Fy%20z", "c")));
}

TEST(IdentityHeaders, RefuseWhatWouldBeAnotherHeader) {
  EXPECT_FALSE(IdentityHeaders({"jane\r\nX-Remote-Group: system:masters", "", {}, {}}));
  EXPECT_FALSE(IdentityHeaders({"jane", "", {"a\nb"}, {}}));
  EXPECT_FALSE(IdentityHeaders({"jane", "", {}, {{"k", {std::string("a\0b", 3)}}}}));
}

TEST(IdentityHeaders, AreThisServersAlone) {
  for (const char* own : {"Authorization", "authorization", "x-remote-user", "X-Remote-Group",
                          "X-Remote-Extra-a", "Impersonate-User", "impersonate-extra-a"}) {
    EXPECT_TRUE(IsIdentityHeader(own)) << own;
  }
  for (const char* others : {"Accept", "X-Remote", "X-Forwarded-For", "Impersonate"}) {
    EXPECT_FALSE(IsIdentityHeader(others)) << others;
  }
}

TEST(GroupVersion, OfPaths) {
  const auto of = [](std::string_view path) {
    const auto [group, version] = GroupVersionOf(path);
    return std::string(group) + "|" + std::string(version);
  };
  EXPECT_EQ(of("/apis/wardle.example.com/v1alpha1"), "wardle.example.com|v1alpha1");
  EXPECT_EQ(of("/apis/wardle.example.com/v1alpha1/"), "wardle.example.com|v1alpha1");
  EXPECT_EQ(of("/apis/wardle.example.com/v1alpha1/namespaces/a/flunders"), "wardle.example.com|v1alpha1");
  EXPECT_EQ(of("/api/v1/pods"), "|v1");
  for (const char* other :
       {"/", "", "/apis", "/apis/", "/apis/wardle.example.com", "/apis/wardle.example.com/", "/apis//v1",
        "/version", "apis/a/v1", "/apisx/a/v1"}) {
    EXPECT_EQ(of(other), "|") << other;
  }
}

}  // namespace
}  // namespace keelson::apiserver
