import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiError } from "../api/errors";
import { useWho, WHO_KEY } from "../api/who";
import { useLiveState } from "../live/useLive";
import { Icon } from "../ui/Icon";
import styles from "./Connection.module.css";

const ASK_MS = 5_000;

/**
 * Says that the server does not answer, as long as it does not. Who lost the live stream asks who
 * they are: then a page whose session has ended shows the sign-in, not old figures.
 */
export function Connection() {
  const client = useQueryClient();
  const live = useLiveState();
  const { error } = useWho();
  const wasLost = useRef(false);
  const [isCut, setCut] = useState(false);
  const isAway = error instanceof ApiError && error.status === 0;
  const isLost = isCut || isAway;
  useEffect(() => {
    if (live !== "connecting") setCut(live === "lost"); // A try that has begun is no news.
  }, [live]);
  useEffect(() => {
    if (live !== "slow") return; // Without a stream nothing else tells that the server is away.
    const timer = setInterval(() => void client.refetchQueries({ queryKey: WHO_KEY }), ASK_MS);
    return () => clearInterval(timer);
  }, [client, live]);
  useEffect(() => {
    if (!isLost) {
      // What failed or changed in the meantime is asked for again.
      if (wasLost.current) void client.invalidateQueries();
      wasLost.current = false;
      return;
    }
    wasLost.current = true;
    const ask = () => void client.refetchQueries({ queryKey: WHO_KEY });
    ask();
    const timer = setInterval(ask, ASK_MS);
    return () => clearInterval(timer);
  }, [client, isLost]);
  if (!isAway) return null;
  return (
    <p role="alert" className={styles.away}>
      <Icon name="warning" size={14} />
      The server does not answer: what you see may be old. Check that it is running and that you can
      reach it; the page tries again by itself.
    </p>
  );
}
