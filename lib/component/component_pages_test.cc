#include "lib/component/component_pages.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace keelson::component {
namespace {

StatusPage Page() {
  const WallTime started(std::chrono::seconds(1767225600));  // 2026-01-01
  return {"kubelet", started, started + std::chrono::seconds(3661), {"/configz", "/metrics"}};
}

constexpr char kObject[] = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz";

TEST(ComponentPages, StatuszIsTextForPeople) {
  for (const char* accept : {"", "*/*", "text/plain", "application/json, */*"}) {
    const PageAnswer answer = AnswerStatusz(Page(), accept);
    EXPECT_EQ(answer.status, 200) << accept;
    EXPECT_EQ(answer.content_type, "text/plain; charset=utf-8");
    EXPECT_EQ(answer.text.rfind("\nkubelet statusz\nWarning: ", 0), 0u) << answer.text;
    for (const char* line : {"\nStarted: Thu Jan  1 00:00:00 UTC 2026\n", "\nUp: 1 hr 01 min 01 sec\n",
                             "\nEmulation version: 1.36\n", "\nPaths: /configz /metrics\n"}) {
      EXPECT_NE(answer.text.find(line), std::string::npos) << line << answer.text;
    }
  }
}

TEST(ComponentPages, StatuszIsAnObjectForWhoAsks) {
  const PageAnswer answer = AnswerStatusz(Page(), kObject);
  EXPECT_EQ(answer.content_type, "application/json");
  const auto object = boost::json::parse(answer.text);
  EXPECT_EQ(object.at("kind"), "Statusz");
  EXPECT_EQ(object.at("apiVersion"), "config.k8s.io/v1beta1");
  EXPECT_EQ(object.at("metadata").at("name"), "kubelet");
  EXPECT_EQ(object.at("startTime"), "2026-01-01T00:00:00Z");
  EXPECT_EQ(object.at("uptimeSeconds"), 3661);
  EXPECT_EQ(object.at("emulationVersion"), "1.36");
  EXPECT_EQ(object.at("paths").at(1), "/metrics");
}

TEST(ComponentPages, FlagzHasValuesByName) {
  const std::map<std::string, std::string> flags = {{"config", "/etc/k.yaml"}, {"v", "2"}};
  EXPECT_NE(AnswerFlagz("kubelet", flags, "").text.find("purposes only.\n\nconfig=/etc/k.yaml\nv=2\n"),
            std::string::npos);
  const auto object = boost::json::parse(
      AnswerFlagz("kubelet", flags, "application/json;v=v1alpha1;g=config.k8s.io;as=Flagz").text);
  EXPECT_EQ(object.at("apiVersion"), "config.k8s.io/v1alpha1");
  EXPECT_EQ(object.at("flags").at("config"), "/etc/k.yaml");
}

TEST(ComponentPages, WhatThereIsNotIsRefused) {
  for (const char* accept :
       {"application/json", "application/yaml", "text/plain;as=Statusz", "text/plain;q=0",
        "application/json;v=v2;g=config.k8s.io;as=Statusz", "application/json;v=v1beta1;g=apps;as=Statusz",
        "application/json;v=v1beta1;g=config.k8s.io;as=Flagz", "application/vnd.kubernetes.protobuf"}) {
    const PageAnswer answer = AnswerStatusz(Page(), accept);
    EXPECT_EQ(answer.status, 406) << accept;
    EXPECT_EQ(boost::json::parse(answer.text).at("reason"), "NotAcceptable");
  }
  EXPECT_EQ(AnswerFlagz("kubelet", {}, kObject).status, 406);
}

}  // namespace
}  // namespace keelson::component
