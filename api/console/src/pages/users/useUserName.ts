import { useParams } from '@tanstack/react-router';

/** Name of the user whose page this is. */
export function useUserName(): string {
  const { name }: { name?: string } = useParams({ strict: false });
  return name ?? '';
}
