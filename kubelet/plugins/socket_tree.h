// Watches a directory tree for sockets that appear and disappear. Ignores names that begin with a dot. Not thread
// safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "lib/base/error.h"
#include "lib/event/inotify.h"

namespace keelson::kubelet {

class SocketTree {
 public:
  struct Events {
    std::function<void(const std::string& path)> appeared;  // also when it replaces another one
    std::function<void(const std::string& path)> disappeared;
  };
  // Creates the directory if needed.
  static Result<SocketTree> Create(std::string root, Events events);
  // Reports the existing sockets.
  Result<> Start();
  // Waits for changes and reports them. kTimeout, kCancelled.
  Result<> Wait(std::stop_token stop, std::chrono::milliseconds timeout);

 private:
  SocketTree(std::string root, Events events, event::Inotify inotify);
  void Scan(const std::string& dir);
  void Look(const std::string& path);
  void Forget(const std::string& path);
  void Handle(const event::FileEvent& event);

  const std::string root_;
  const Events events_;
  event::Inotify inotify_;
  std::map<int, std::string> dirs_;       // by watch
  std::map<std::string, ino_t> sockets_;  // by path
};

}  // namespace keelson::kubelet
